/* SPDX-License-Identifier: MIT
 *
 * delay.c - distance: a link to servers on this host that takes DELAY microseconds in each
 * direction.
 *
 *   delay DELAY PORT TARGET [PORT TARGET]...
 *
 * Listens on 127.0.0.1:PORT and passes on to 127.0.0.1:TARGET. The bytes of a connection stay in
 * order, and the end of a connection takes as long as its bytes do. Bandwidth is not limited, and
 * connecting takes no time. Says "ready" when it listens.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LISTENERS_MAX 16
#define READ_BYTES 65536

/* Bytes that have come in, and when they go on. No bytes: the end of the connection. */
struct chunk {
	struct chunk *next;
	int64_t due_ns;
	size_t len, sent;
	char bytes[];
};

/* One end of a connection, with the bytes that are on their way to it. */
struct side {
	int fd, other; /* index of the other end */
	bool ended;    /* nothing more comes from here */
	struct chunk *first;
};

struct listener {
	int fd;
	uint16_t target;
};

static int64_t delay_ns;
static struct listener listeners[LISTENERS_MAX];
static int listener_count;
static struct side *sides;
static struct pollfd *polls; /* of the listeners, then of the sides */
static int side_count;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static struct sockaddr_in address(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void listen_on(uint16_t port, uint16_t target)
{
	struct sockaddr_in addr = address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 4096) < 0)
		die("listen");
	listeners[listener_count++] = (struct listener){fd, target};
}

/* Takes a free place, or makes one more. */
static int add_side(int fd)
{
	int i = 0, one = 1;

	while (i < side_count && sides[i].fd >= 0)
		i++;
	if (i == side_count) {
		side_count++;
		sides = realloc(sides, (size_t)side_count * sizeof(*sides));
		polls = realloc(polls, (size_t)(LISTENERS_MAX + side_count) * sizeof(*polls));
		if (!sides || !polls)
			die("memory");
		sides[i].first = NULL;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	sides[i].fd = fd;
	sides[i].ended = false;
	return i;
}

static void accept_from(const struct listener *listener)
{
	struct sockaddr_in addr = address(listener->target);
	int near = accept(listener->fd, NULL, NULL), far, a, b;

	if (near < 0)
		die("accept");
	far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(far, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(far);
		close(near);
		return;
	}
	a = add_side(near);
	b = add_side(far);
	sides[a].other = b;
	sides[b].other = a;
}

static void append(struct side *to, const char *bytes, size_t len, int64_t due_ns)
{
	struct chunk **at = &to->first, *chunk = malloc(sizeof(*chunk) + len);

	if (!chunk)
		die("memory");
	chunk->next = NULL;
	chunk->due_ns = due_ns;
	chunk->len = len;
	chunk->sent = 0;
	memcpy(chunk->bytes, bytes, len);
	while (*at)
		at = &(*at)->next;
	*at = chunk;
}

static void close_both(struct side *side)
{
	struct side *both[] = {side, &sides[side->other]};

	for (int i = 0; i < 2; i++) {
		while (both[i]->first) {
			struct chunk *chunk = both[i]->first;

			both[i]->first = chunk->next;
			free(chunk);
		}
		close(both[i]->fd);
		both[i]->fd = -1;
	}
}

static void read_from(struct side *side)
{
	static char bytes[READ_BYTES];
	ssize_t n = recv(side->fd, bytes, sizeof(bytes), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	side->ended = n <= 0;
	append(&sides[side->other], bytes, n > 0 ? (size_t)n : 0, now_ns() + delay_ns);
}

/* Sends the bytes that are due. */
static void write_to(struct side *side, int64_t now)
{
	while (side->first && side->first->due_ns <= now) {
		struct chunk *chunk = side->first;
		ssize_t n;

		if (chunk->len == 0) {
			close_both(side);
			return;
		}
		n = send(side->fd, chunk->bytes + chunk->sent, chunk->len - chunk->sent,
		         MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			close_both(side);
			return;
		}
		chunk->sent += (size_t)n;
		if (chunk->sent < chunk->len)
			return;
		side->first = chunk->next;
		free(chunk);
	}
}

/* Fills in the events to wait for; returns until when to wait. INT64_MAX: for ever. */
static int64_t prepare(int64_t now)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < listener_count; i++)
		polls[i] = (struct pollfd){.fd = listeners[i].fd, .events = POLLIN};
	for (int i = 0; i < side_count; i++) {
		struct side *side = &sides[i];
		struct pollfd *poll = &polls[listener_count + i];

		*poll = (struct pollfd){.fd = side->fd};
		if (side->fd < 0)
			continue;
		if (!side->ended)
			poll->events |= POLLIN;
		if (side->first && side->first->due_ns <= now)
			poll->events |= POLLOUT; /* its socket was full */
		else if (side->first && side->first->due_ns < next)
			next = side->first->due_ns;
		if (poll->events == 0)
			poll->fd = -1; /* poll(2) would report its end again and again */
	}
	return next;
}

static void turn(void)
{
	int64_t now = now_ns(), next = prepare(now), wait = next - now;
	struct timespec timeout = {wait / 1000000000, wait % 1000000000};
	int polled = side_count;

	if (ppoll(polls, (nfds_t)(listener_count + polled), next < INT64_MAX ? &timeout : NULL,
	          NULL) < 0 &&
	    errno != EINTR)
		die("poll");
	for (int i = 0; i < polled; i++)
		if (sides[i].fd >= 0 && !sides[i].ended &&
		    polls[listener_count + i].revents & ~POLLOUT)
			read_from(&sides[i]);
	now = now_ns();
	for (int i = 0; i < polled; i++)
		if (sides[i].fd >= 0)
			write_to(&sides[i], now);
	for (int i = 0; i < listener_count; i++)
		if (polls[i].revents)
			accept_from(&listeners[i]);
}

int main(int argc, char **argv)
{
	struct rlimit files;

	if (argc < 4 || argc % 2 != 0 || argc / 2 - 1 > LISTENERS_MAX) {
		fprintf(stderr, "usage: delay MICROSECONDS PORT TARGET [PORT TARGET]...\n");
		return 1;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	prctl(PR_SET_TIMERSLACK, 1); /* nanosecond */
	delay_ns = atoll(argv[1]) * 1000;
	polls = calloc(LISTENERS_MAX, sizeof(*polls));
	if (!polls)
		die("memory");
	for (int i = 2; i < argc; i += 2)
		listen_on((uint16_t)atoi(argv[i]), (uint16_t)atoi(argv[i + 1]));
	puts("ready");
	fflush(stdout);
	for (;;)
		turn();
}
