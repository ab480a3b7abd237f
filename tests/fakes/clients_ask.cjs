// Asks a server as OpenAI's client for Node does: jobs and reports as in clients_ask.py.
"use strict";
const readline = require("node:readline");
const OpenAI = require("openai");

function clientOf(job) {
  return new OpenAI({
    baseURL: `${job.url}/v1`,
    apiKey: job.key,
    defaultHeaders: { "x-request-id": job.id, ...job.headers },
    ...job.options,
  });
}

function asked(job) {
  const messages = [{ role: "user", content: job.prompt }];
  return { model: job.model, messages, max_tokens: job.tokens };
}

const ASKS = {
  async node_chat(job) {
    const answer = await clientOf(job).chat.completions.create(asked(job));
    return answer.choices[0].message.content;
  },
  async node_chat_stream(job) {
    const parts = [];
    for await (const chunk of await clientOf(job).chat.completions.create({ ...asked(job), stream: true })) {
      parts.push(chunk.choices[0]?.delta.content ?? "");
    }
    return parts.join("");
  },
};

async function report(job) {
  try {
    return { id: job.id, text: await ASKS[job.asks](job) };
  } catch (error) {
    return { id: job.id, raised: error.constructor.name, says: error.message };
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await Promise.all(JSON.parse(line).map(report))) + "\n");
  }
}

main();
