// A replica that costs next to nothing, for the bench of the data plane. One thread, one epoll, HTTP/1.1 on loopback.
//
// usage: replica PORT
//
// POST with "stream":true is answered by "max_tokens" events, each a chunk and a send of its own and stamped with the
// monotonic clock in nanoseconds as @STAMP@; "seed" is the time between two of them in milliseconds, 1 to 1000, 40
// without it. POST without it is answered at once, GET by whatever any proxy asks its replicas for. The counting
// routes are not there, as in an engine that is older than they are.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
  SLOTS = 1024,       // of the wheel, one a millisecond
  MOST_MS = 1000,     // longest time between two events of a stream
  USUAL_MS = 40,      // 25 events a second
  USUAL_TOKENS = 16,
  LATE_TICKS = 50,    // after a pause of this process, older ticks are dropped
  READ_BYTES = 65536,
  EVENTS = 256,
};

typedef struct connection {
  int fd;
  char *in, *out;
  size_t in_used, in_room, out_sent, out_used, out_room;
  int tokens_left, pace_ms, slot;      // slot -1: not on the wheel
  bool streaming, waits_to_write, dead;
  struct connection *previous, *next;  // on the wheel, or among the dead
} connection;

static int poller;
static uint64_t tick, spread;
static connection *wheel[SLOTS], *dead;

static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n";
static const char STREAM_END[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
static const char WHOLE[] =
    "{\"id\":\"chatcmpl-9f1c2b3a4d5e6f70\",\"object\":\"chat.completion\",\"created\":1760000000,\"model\":\"m\","
    "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"The gateway admits the request because "
    "its reservation of input tokens plus the permitted output ceiling fits inside the safe budget of the replica.\"},"
    "\"logprobs\":null,\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":400,\"completion_tokens\":28,\"total_tokens\":428}}";
static const char DESCRIPTION[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"owned_by\":\"bench\",\"max_model_len\":131072}],"
    "\"status\":\"ok\",\"model_id\":\"m\",\"model_path\":\"m\",\"served_model_name\":\"m\",\"tokenizer_path\":\"m\","
    "\"is_generation\":true,\"version\":\"3.3.5\",\"max_concurrent_requests\":100000,\"max_input_tokens\":131071,"
    "\"max_total_tokens\":131072,\"max_best_of\":1,\"max_client_batch_size\":4}";
static const char ABSENT[] = "{\"error\":\"no such route\",\"error_type\":\"not_found\"}";

static uint64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static void want_to_write(connection *c, bool wanted) {
  if (wanted == c->waits_to_write) return;
  struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
  c->waits_to_write = wanted;
}

static void off_the_wheel(connection *c) {
  if (c->slot < 0) return;
  if (c->previous) c->previous->next = c->next;
  else wheel[c->slot] = c->next;
  if (c->next) c->next->previous = c->previous;
  c->slot = -1;
  c->previous = c->next = NULL;
}

static void onto_the_wheel(connection *c, uint64_t at) {
  c->slot = at % SLOTS;
  c->previous = NULL;
  c->next = wheel[c->slot];
  if (c->next) c->next->previous = c;
  wheel[c->slot] = c;
}

static void bury(connection *c) {  // freed later: events of this round may still name it
  if (c->dead) return;
  off_the_wheel(c);
  close(c->fd);
  c->dead = true;
  c->next = dead;
  dead = c;
}

static bool put(connection *c, const char *bytes, size_t count) {  // false: the peer is gone
  if (c->out_sent == c->out_used) {
    ssize_t sent = send(c->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == (ssize_t)count) return true;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) sent = 0;
    bytes += sent;
    count -= sent;
    c->out_sent = c->out_used = 0;
  }
  if (c->out_used + count > c->out_room) {
    c->out_room = 2 * (c->out_used + count);
    c->out = realloc(c->out, c->out_room);
  }
  memcpy(c->out + c->out_used, bytes, count);
  c->out_used += count;
  want_to_write(c, true);
  return true;
}

static bool put_answer(connection *c, const char *status, const char *body) {
  char answer[2048];
  int size = snprintf(answer, sizeof answer,
                      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                      strlen(body), body);
  return put(c, answer, size);
}

static bool put_event(connection *c) {
  char event[512], chunk[600];
  int size = snprintf(event, sizeof event,
                      "data: {\"id\":\"chatcmpl-9f1c2b3a4d5e6f70\",\"object\":\"chat.completion.chunk\","
                      "\"created\":1760000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
                      "\" @%llu@\"},\"logprobs\":null,\"finish_reason\":%s}]}\n\n",
                      (unsigned long long)now_ns(), c->tokens_left == 1 ? "\"stop\"" : "null");
  return put(c, chunk, snprintf(chunk, sizeof chunk, "%x\r\n%s\r\n", size, event));
}

static long number_after(const char *body, size_t size, const char *name, long otherwise) {
  const char *found = memmem(body, size, name, strlen(name));
  return found ? strtol(found + strlen(name), NULL, 10) : otherwise;
}

static bool has(const char *bytes, size_t size, const char *text) { return memmem(bytes, size, text, strlen(text)); }

static bool answer(connection *c, const char *body, size_t size) {
  if (!strncmp(c->in, "GET", 3)) return put_answer(c, "200 OK", DESCRIPTION);
  if (!strncmp(c->in, "POST /tokenize", 14) || !strncmp(c->in, "POST /chat_tokenize", 19))
    return put_answer(c, "404 Not Found", ABSENT);
  if (!has(body, size, "\"stream\":true") && !has(body, size, "\"stream\": true")) return put_answer(c, "200 OK", WHOLE);
  long tokens = number_after(body, size, "\"max_tokens\":", USUAL_TOKENS);
  c->tokens_left = number_after(body, size, "\"max_completion_tokens\":", tokens);
  c->pace_ms = number_after(body, size, "\"seed\":", USUAL_MS);
  if (c->pace_ms < 1 || c->pace_ms > MOST_MS) c->pace_ms = USUAL_MS;
  c->streaming = true;
  onto_the_wheel(c, tick + 1 + spread++ % c->pace_ms);
  return put(c, STREAM_HEAD, sizeof STREAM_HEAD - 1);
}

// Answers every whole request that has come; false: the peer is gone.
static bool take_requests(connection *c) {
  while (!c->streaming) {
    char *end = memmem(c->in, c->in_used, "\r\n\r\n", 4);
    if (!end) return true;
    size_t head = end - c->in + 4, body = 0;
    bool chunked = false;
    for (char *line = c->in; line < end;) {
      char *next = memchr(line, '\n', c->in + head - line) + 1;
      if (!strncasecmp(line, "content-length:", 15)) body = strtoul(line + 15, NULL, 10);
      if (!strncasecmp(line, "transfer-encoding:", 18)) chunked = true;
      line = next;
    }
    if (chunked) {
      char *last = memmem(c->in + head, c->in_used - head, "0\r\n\r\n", 5);
      if (!last) return true;
      body = last + 5 - (c->in + head);
    }
    if (c->in_used < head + body) return true;
    bool alive = answer(c, c->in + head, body);
    c->in_used -= head + body;
    memmove(c->in, c->in + head + body, c->in_used);
    if (!alive) return false;
  }
  return true;
}

static void read_from(connection *c) {
  if (c->in_room - c->in_used < READ_BYTES) {
    c->in_room = 2 * c->in_room + READ_BYTES;
    c->in = realloc(c->in, c->in_room);
  }
  ssize_t count = recv(c->fd, c->in + c->in_used, c->in_room - c->in_used, 0);
  if (count < 0 && errno == EAGAIN) return;
  if (count <= 0) {
    bury(c);
    return;
  }
  c->in_used += count;
  if (!take_requests(c)) bury(c);
}

static void write_to(connection *c) {
  ssize_t sent = send(c->fd, c->out + c->out_sent, c->out_used - c->out_sent, MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) {
    bury(c);
    return;
  }
  if (sent > 0) c->out_sent += sent;
  if (c->out_sent == c->out_used) want_to_write(c, false);
}

static void send_due(void) {
  connection *due = wheel[tick % SLOTS], *next;
  for (connection *c = due; c; c = next) {
    next = c->next;
    off_the_wheel(c);
    if (c->out_sent < c->out_used) {  // it does not read: the event waits, as an engine's would in its socket
      onto_the_wheel(c, tick + c->pace_ms);
      continue;
    }
    bool alive = put_event(c);
    if (alive && --c->tokens_left > 0) {
      onto_the_wheel(c, tick + c->pace_ms);
      continue;
    }
    c->streaming = false;
    if (!alive || !put(c, STREAM_END, sizeof STREAM_END - 1) || !take_requests(c)) bury(c);
  }
  tick++;
}

static void accept_all(int listening) {
  for (int fd; (fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->slot = -1;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
  }
}

int main(int count, char **words) {
  if (count != 2) return fprintf(stderr, "usage: replica PORT\n"), 2;
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  struct sockaddr_in place = {
      .sin_family = AF_INET, .sin_port = htons(atoi(words[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listening, (struct sockaddr *)&place, sizeof place) || listen(listening, 4096)) return perror("replica"), 1;
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  timerfd_settime(timer, 0, &(struct itimerspec){{0, 1000000}, {0, 1000000}}, NULL);
  poller = epoll_create1(0);
  static connection door, clock;  // stand for the two descriptors that are no connections
  epoll_ctl(poller, EPOLL_CTL_ADD, listening, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &door});
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &(struct epoll_event){.events = EPOLLIN, .data.ptr = &clock});
  for (;;) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(poller, events, EVENTS, -1);
    for (int i = 0; i < ready; i++) {
      connection *c = events[i].data.ptr;
      if (c == &door) accept_all(listening);
      else if (c == &clock) {
        uint64_t ticks;
        if (read(timer, &ticks, sizeof ticks) != sizeof ticks) continue;
        for (ticks = ticks < LATE_TICKS ? ticks : LATE_TICKS; ticks; ticks--) send_due();
      } else {
        if (!c->dead && events[i].events & EPOLLOUT) write_to(c);
        if (!c->dead && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_from(c);
      }
    }
    while (dead) {
      connection *next = dead->next;
      free(dead->in);
      free(dead->out);
      free(dead);
      dead = next;
    }
  }
}
