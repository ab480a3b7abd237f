"""Options by which a command says which Prometheus it asks, and how."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_PROMETHEUS = "http://127.0.0.1:9090"

PrometheusOption = Annotated[
    str, typer.Option("--prometheus", "-p", metavar="URL", help="Prometheus, Thanos or Mimir, with its path.")
]
MatchOption = Annotated[
    str,
    typer.Option("--match", metavar="MATCHERS", show_default=False, help="Which gateways, as in 'job=\"llmshed\"'."),
]
BearerOption = Annotated[
    Path | None, typer.Option("--bearer-file", metavar="FILE", show_default=False, help="File with a bearer token.")
]
BasicOption = Annotated[
    Path | None, typer.Option("--basic-file", metavar="FILE", show_default=False, help="File with USER:PASSWORD.")
]
AuthorityOption = Annotated[
    Path | None, typer.Option("--ca-file", metavar="FILE", show_default=False, help="Certificates to trust.")
]
CertificateOption = Annotated[
    Path | None,
    typer.Option("--cert-file", metavar="FILE", show_default=False, help="Own certificate with its key."),
]
InsecureOption = Annotated[bool, typer.Option("--insecure", help="Trust any certificate.")]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=300, help="Within which all is asked.")
]
