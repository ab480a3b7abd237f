// Clients for the bench of the data plane: one request, many times, over many connections. One thread, one epoll.
//
// usage: clients closed PORT REQUEST_FILE CONNECTIONS WARM_SECONDS SECONDS
//        clients open   PORT REQUEST_FILE PER_SECOND  WARM_SECONDS SECONDS
//
// `closed`: each connection sends its next request when the answer to the last is complete; the first ones are spread
// over the first half of the warm time. `open`: a request every 1/PER_SECOND, timed from when it was planned, each on
// a connection that is free or new. The file holds a whole HTTP/1.1 request; each ######## in it becomes a number that
// no other request has. "begin" is written when the warm time is over, and one line of JSON when the seconds after it
// are; connections are dropped then as they are. Only what ends in those seconds is told. Events are known by the
// replica's @STAMP@.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  MOST_CONNECTIONS = 16384,
  MOST_STATUS = 600,
  HEAD_BYTES = 8192,
  REQUEST_BYTES = 1 << 20,
  READ_BYTES = 1 << 18,
  EVENTS = 512,
};
static const char MARK[] = "########";

typedef struct {
  double *values;
  size_t used, room;
} samples;

typedef enum { HEAD, CHUNK_SIZE, CHUNK, CHUNK_END, LAST_LINE, BODY, UNTIL_CLOSE } part;

typedef struct connection {
  int fd;  // -1: not connected
  bool busy, closes, in_stamp;
  char *request;
  size_t sent, head_used;
  uint64_t began, left, stamp;
  int status;
  part part;
  char head[HEAD_BYTES];
  struct connection *next_free;
} connection;

static int poller, port;
static char request[REQUEST_BYTES];
static size_t request_size;
static uint64_t numbers, answers[MOST_STATUS], cut, not_sent, connected;
static samples answer_us, first_byte_us, event_us;

static uint64_t now_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static void add(samples *all, uint64_t from) {
  if (all->used == all->room) {
    all->room = all->room ? 2 * all->room : 65536;
    all->values = realloc(all->values, all->room * sizeof *all->values);
  }
  all->values[all->used++] = (now_ns() - from) / 1e3;
}

static void forget_what_came(void) {
  memset(answers, 0, sizeof answers);
  cut = not_sent = connected = 0;
  answer_us.used = first_byte_us.used = event_us.used = 0;
}

static void drop(connection *c) {
  if (c->fd >= 0) close(c->fd);
  c->fd = -1;
  c->busy = false;
}

static void watch(connection *c, int how, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  epoll_ctl(poller, how, c->fd, &event);
}

static bool send_rest(connection *c) {
  while (c->sent < request_size) {
    ssize_t sent = send(c->fd, c->request + c->sent, request_size - c->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      return true;
    }
    if (sent < 0) return false;
    c->sent += sent;
  }
  return true;
}

static bool connect_to_port(connection *c) {
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  struct sockaddr_in place = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(c->fd, (struct sockaddr *)&place, sizeof place) && errno != EINPROGRESS) return false;
  connected++;
  watch(c, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT);
  return true;
}

static void number_it(connection *c) {
  if (!c->request) c->request = memcpy(malloc(request_size), request, request_size);
  char digits[sizeof MARK];
  snprintf(digits, sizeof digits, "%08llx", (unsigned long long)numbers++ & 0xffffffff);
  for (char *at = request; (at = memmem(at, request + request_size - at, MARK, sizeof MARK - 1)); at++)
    memcpy(c->request + (at - request), digits, sizeof MARK - 1);
}

static void start(connection *c, uint64_t at) {
  number_it(c);
  c->busy = true;
  c->began = at;
  c->sent = c->head_used = c->left = c->stamp = 0;
  c->in_stamp = c->closes = false;
  c->status = 0;
  c->part = HEAD;
  // A connection that is new is written to when it is made.
  if (c->fd < 0 ? connect_to_port(c) : send_rest(c)) return;
  not_sent++;
  drop(c);
}

static void look_for_stamps(connection *c, const char *bytes, size_t size) {
  for (; size; bytes++, size--) {
    if (*bytes == '@') {
      if (c->in_stamp && c->stamp) add(&event_us, c->stamp);
      c->in_stamp = !(c->in_stamp && c->stamp);
      c->stamp = 0;
    } else if (c->in_stamp && *bytes >= '0' && *bytes <= '9') {
      c->stamp = 10 * c->stamp + (*bytes - '0');
    } else {
      c->in_stamp = false;
      c->stamp = 0;
    }
  }
}

static void read_head(connection *c) {
  c->head[c->head_used] = 0;
  c->status = atoi(c->head + sizeof "HTTP/1.1");
  c->part = UNTIL_CLOSE;
  for (char *line = c->head; (line = strstr(line, "\r\n")); line += 2) {
    if (!strncasecmp(line + 2, "content-length:", 15)) c->left = strtoull(line + 17, NULL, 10), c->part = BODY;
    if (!strncasecmp(line + 2, "transfer-encoding:", 18)) c->part = CHUNK_SIZE;
    if (!strncasecmp(line + 2, "connection: close", 17)) c->closes = true;
  }
}

// Takes the next bytes of an answer; true when it is complete.
static bool take(connection *c, const char *bytes, size_t size) {
  while (size) {
    size_t taken = 1;
    switch (c->part) {
      case HEAD:
        if (c->head_used == HEAD_BYTES - 1) c->head_used = 0;  // no proxy's head is that long
        c->head[c->head_used++] = *bytes;
        if (c->head_used >= 4 && !memcmp(c->head + c->head_used - 4, "\r\n\r\n", 4)) {
          read_head(c);
          if (c->part == BODY && !c->left) return true;
        }
        break;
      case CHUNK_SIZE:
        if (*bytes == '\n') c->part = c->left ? CHUNK : LAST_LINE;
        else if (*bytes != '\r') c->left = 16 * c->left + (*bytes <= '9' ? *bytes - '0' : (*bytes | 32) - 'a' + 10);
        break;
      case CHUNK_END:
        if (*bytes == '\n') c->part = CHUNK_SIZE;
        break;
      case LAST_LINE:
        if (*bytes == '\n') return true;
        break;
      case CHUNK:
      case BODY:
        taken = size < c->left ? size : c->left;
        look_for_stamps(c, bytes, taken);
        c->left -= taken;
        if (!c->left && c->part == BODY) return true;
        if (!c->left) c->part = CHUNK_END;
        break;
      case UNTIL_CLOSE:
        taken = size;
        look_for_stamps(c, bytes, taken);
        break;
    }
    bytes += taken;
    size -= taken;
  }
  return false;
}

// Reads what has come; true when the request is over, well or badly.
static bool read_from(connection *c) {
  static char bytes[READ_BYTES];
  ssize_t size = recv(c->fd, bytes, sizeof bytes, 0);
  if (size < 0 && errno == EAGAIN) return false;
  bool gone = size <= 0, was_busy = c->busy;
  if (size > 0 && c->busy && !c->head_used) add(&first_byte_us, c->began);
  bool complete = gone ? c->busy && c->part == UNTIL_CLOSE : c->busy && take(c, bytes, size);
  if (complete) {
    add(&answer_us, c->began);
    answers[c->status > 0 && c->status < MOST_STATUS ? c->status : 0]++;
  } else if (gone && c->busy) {
    cut++;
  }
  if (gone || (complete && c->closes)) drop(c);
  if (complete) c->busy = false;
  return was_busy && !c->busy;
}

static int by_size(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static void tell(const char *name, samples *all) {
  static const double PARTS[] = {0.5, 0.99, 1.0};
  if (all->used) qsort(all->values, all->used, sizeof *all->values, by_size);
  printf(",\"%s\":[", name);
  for (int i = 0; i < 3; i++)
    printf(all->used ? "%s%.1f" : "%snull", i ? "," : "", all->used ? all->values[(size_t)(PARTS[i] * (all->used - 1))] : 0);
  printf("]");
}

int main(int count, char **words) {
  FILE *file = count == 7 ? fopen(words[3], "r") : NULL;
  if (!file) return fprintf(stderr, "usage: clients closed|open PORT FILE NUMBER WARM_SECONDS SECONDS\n"), 2;
  request_size = fread(request, 1, sizeof request, file);
  fclose(file);
  bool open = !strcmp(words[1], "open");
  port = atoi(words[2]);
  double number = atof(words[4]), warm_seconds = atof(words[5]), seconds = atof(words[6]);
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  poller = epoll_create1(0);

  static connection *all[MOST_CONNECTIONS];
  connection *free_ones = NULL;
  uint64_t origin = now_ns(), begin = origin + warm_seconds * 1e9, end = begin + seconds * 1e9;
  double apart = open ? 1e9 / number : warm_seconds / 2 * 1e9 / number;
  uint64_t started = 0, made = 0, most = open ? UINT64_MAX : (uint64_t)number;
  bool counting = false;
  for (;;) {
    uint64_t now = now_ns();
    if (!counting && now >= begin) {
      forget_what_came();
      counting = true;
      printf("begin\n");
      fflush(stdout);
    }
    if (now >= end) break;
    uint64_t due = end;
    while (started < most && (due = origin + started * apart) <= now) {
      started++;
      connection *c = free_ones;
      if (c) free_ones = c->next_free;
      else if (made < MOST_CONNECTIONS) {
        c = all[made++] = calloc(1, sizeof *c);
        c->fd = -1;
      } else {
        not_sent++;
        continue;
      }
      start(c, open ? due : now);
      if (!c->busy && open) c->next_free = free_ones, free_ones = c;
    }
    uint64_t next = counting ? end : begin;
    if (started < most && due < next) next = due;
    uint64_t wait = next > now ? next - now : 0;
    struct timespec until = {wait / 1000000000, wait % 1000000000};
    struct epoll_event events[EVENTS];
    int ready = epoll_pwait2(poller, events, EVENTS, &until, NULL);
    for (int i = 0; i < ready; i++) {
      connection *c = events[i].data.ptr;
      if (c->fd < 0) continue;
      if (events[i].events & EPOLLOUT && c->busy) {
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
        if (!send_rest(c)) {
          cut++;
          drop(c);
        }
      }
      bool over = c->fd < 0 || read_from(c);
      if (!over) continue;
      if (open) c->next_free = free_ones, free_ones = c;
      else start(c, now_ns());
    }
  }
  uint64_t busy = 0;
  for (uint64_t i = 0; i < made; i++) busy += all[i]->busy;
  printf("{\"seconds\":%.4f,\"running\":%llu,\"cut\":%llu,\"not_sent\":%llu,\"connected\":%llu,\"events\":%zu,\"answers\":{",
         (now_ns() - begin) / 1e9, (unsigned long long)busy, (unsigned long long)cut, (unsigned long long)not_sent,
         (unsigned long long)connected, event_us.used);
  bool told = false;
  for (int status = 0; status < MOST_STATUS; status++)
    if (answers[status]) printf("%s\"%d\":%llu", told ? "," : "", status, (unsigned long long)answers[status]), told = true;
  printf("}");
  tell("answer_us", &answer_us);
  tell("first_byte_us", &first_byte_us);
  tell("event_us", &event_us);
  printf("}\n");
  return 0;
}
