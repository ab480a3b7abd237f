"""Reading a Prometheus, or what speaks as one (Thanos, Mimir behind a prefix): never in `serve`, always within a time.

prometheus-api-client asks; around it stand a bound on the time of every answer, no hidden second tries, and errors that
say what to do. Questions are asked side by side, and each that is not answered in time is named.
"""
