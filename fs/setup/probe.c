/* SPDX-License-Identifier: MIT
 *
 * probe.c - see probe.h. One process for each server writes what it has found as one struct probe:
 * less than PIPE_BUF, so that each comes as a whole.
 */
#include "setup/probe.h"

#include "host/clock.h"
#include "host/helper.h"
#include "setup/credentials.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert(sizeof(struct probe) <= PIPE_BUF, "");

#define SHORTEST_MS 1
#define LONGEST_MS 86400000

/* ---- one question ---- */

/* When what begins now is to be over, though this process be stopped meanwhile (Ctrl-Z, fg). */
static int64_t limit_us(void)
{
	return clock_now_us() + PROBE_ANSWER_S * 1000000;
}

/* A descriptor or -errno. */
static int connect_to(const char *address, int64_t until_us)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	                         .ai_socktype = SOCK_STREAM};
	char host[sizeof(((struct probe *)0)->address)], *port;
	struct addrinfo *ai;
	int fd, error;

	snprintf(host, sizeof(host), "%s", *address == '[' ? address + 1 : address);
	port = strrchr(host, ':');
	if (!port)
		return -EINVAL;
	*port++ = '\0';
	host[strcspn(host, "]")] = '\0';
	if (getaddrinfo(host, port, &hints, &ai) != 0)
		return -EINVAL;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 ? errno : 0;
	freeaddrinfo(ai);
	if (error == EINPROGRESS &&
	    (clock_poll(fd, POLLOUT, until_us) <= 0 ||
	     getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)}) < 0))
		error = ETIMEDOUT;
	if (!error)
		return fd;
	if (fd >= 0)
		close(fd);
	return -error;
}

/* Until there are so many bytes, or the end. As read(2); -EAGAIN: nothing came in time. */
static ssize_t read_whole(int fd, char *buffer, size_t size, int64_t until_us)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = -EAGAIN;

		if (clock_poll(fd, POLLIN, until_us) > 0) {
			n = recv(fd, buffer + len, size - len, 0);
			n = n < 0 ? -errno : n;
		}
		if (n <= 0)
			return len > 0 ? (ssize_t)len : n;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

/* Nothing was read of what a ZooKeeper says: by errno, or 0. */
static enum probe_met met_instead(ssize_t n)
{
	return n == -EAGAIN ? PROBE_SILENT : PROBE_CLOSES;
}

/* One connection: sends, and reads. `ret_answer` ends with a 0. As read(2); below 1: probe->met. */
static ssize_t ask(struct probe *probe, const void *question, size_t len, char *ret_answer,
                   size_t size, int *ret_fd)
{
	int fd = connect_to(probe->address, limit_us());
	ssize_t n;

	if (fd < 0) {
		probe->met = PROBE_UNREACHABLE;
		probe->error = -fd;
		return fd;
	}
	n = send(fd, question, len, MSG_NOSIGNAL) == (ssize_t)len
	            ? read_whole(fd, ret_answer, size - 1, limit_us())
	            : -errno;
	if (n <= 0)
		probe->met = met_instead(n);
	ret_answer[n > 0 ? n : 0] = '\0';
	if (ret_fd)
		*ret_fd = fd;
	else
		close(fd);
	return n;
}

/* ---- four-letter words ---- */

static const char *line_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, key, len) == 0)
			return text + len;
	return NULL;
}

/* Only these characters: it is foreign text. */
static void copy_word(char *to, size_t size, const char *text, const char *characters)
{
	size_t len = text ? strspn(text, characters) : 0;

	snprintf(to, size, "%.*s", (int)(len < size ? len : size - 1), text ? text : "");
}

static bool is_refused_word(const char *answer)
{
	return strstr(answer, " is not executed because it is not in the whitelist") != NULL;
}

/* False: the server cannot be used, as probe->met says. */
static bool ask_srvr(struct probe *probe)
{
	char answer[4096];
	const char *version;

	if (ask(probe, "srvr", 4, answer, sizeof(answer), NULL) <= 0)
		return false;
	version = line_of(answer, "Zookeeper version: ");
	if (version) {
		copy_word(probe->version, sizeof(probe->version), version, "0123456789.");
		copy_word(probe->mode, sizeof(probe->mode), line_of(answer, "Mode: "),
		          "abcdefghijklmnopqrstuvwxyz");
	} else if (strstr(answer, "not currently serving")) {
		probe->met = PROBE_NO_QUORUM;
	} else if (answer[0] == 0x15 && answer[1] == 0x03) { /* an alert of TLS */
		probe->met = PROBE_SPEAKS_TLS;
	} else if (!is_refused_word(answer)) {
		probe->met = PROBE_STRANGE;
	}
	return probe->met == PROBE_USABLE;
}

static int64_t conf_number(const char *text, const char *key, int64_t otherwise)
{
	const char *value = line_of(text, key);
	char *end;
	long long number = value ? strtoll(value, &end, 10) : 0;

	return value && end != value && number >= 0 && number <= INT32_MAX ? number : otherwise;
}

static void ask_conf(struct probe *probe)
{
	struct probe copy = *probe; /* what is met here says nothing about sessions */
	char answer[4096];

	if (ask(&copy, "conf", 4, answer, sizeof(answer), NULL) <= 0)
		return;
	probe->tick_ms = conf_number(answer, "tickTime=", 0);
	probe->has_conf = probe->tick_ms > 0;
	if (!probe->has_conf)
		return;
	probe->shortest_ms = conf_number(answer, "minSessionTimeout=", 0);
	probe->longest_ms = conf_number(answer, "maxSessionTimeout=", 0);
	probe->connections = conf_number(answer, "maxClientCnxns=", -1);
}

/* ---- sessions ---- */

/* The structs are as jute writes them; a server takes the probe for a client of its own kind. */
struct connect_request {
	uint32_t len, version;
	uint64_t zxid;
	uint32_t timeout_ms;
	uint64_t session;
	uint32_t password_len;
	char password[16];
	uint8_t read_only;
} __attribute__((packed));

struct connect_response {
	uint32_t len, version, timeout_ms;
} __attribute__((packed));

#define CLOSE_SESSION (-11)
#define GET_DATA 4
#define SYNC 9
#define ADD_AUTH 100
#define AUTH_XID (-4)
#define GET_XID 2
#define NO_NODE (-101)

/* A request: a path or credentials, and little else. */
struct packet {
	size_t len;
	char data[LC_PATH_MAX + CREDENTIALS_MAX + 64];
};

static void put_raw(struct packet *packet, const void *bytes, size_t len)
{
	assert(packet->len + len <= sizeof(packet->data));
	memcpy(packet->data + packet->len, bytes, len);
	packet->len += len;
}

static void put_number(struct packet *packet, int32_t number)
{
	uint32_t big = htobe32((uint32_t)number);

	put_raw(packet, &big, sizeof(big));
}

static void put_text(struct packet *packet, const char *text)
{
	put_number(packet, (int32_t)strlen(text));
	put_raw(packet, text, strlen(text));
}

static void begin_packet(struct packet *packet, int32_t xid, int32_t type)
{
	packet->len = 0;
	put_number(packet, 0); /* the length */
	put_number(packet, xid);
	put_number(packet, type);
}

static bool send_packet(int fd, struct packet *packet)
{
	uint32_t len = htobe32((uint32_t)(packet->len - sizeof(len)));

	memcpy(packet->data, &len, sizeof(len));
	return send(fd, packet->data, packet->len, MSG_NOSIGNAL) == (ssize_t)packet->len;
}

/* The sync: a server that lags may not know the node yet. */
static bool send_question(int fd, const struct probe_question *question)
{
	char path[LC_PATH_MAX + sizeof(LC_MARK_NODE) + 1];
	struct packet packet;

	snprintf(path, sizeof(path), "%s/%s", question->root, LC_MARK_NODE);
	if (question->credentials) {
		begin_packet(&packet, AUTH_XID, ADD_AUTH);
		put_number(&packet, 0);
		put_text(&packet, "digest");
		put_text(&packet, question->credentials);
		if (!send_packet(fd, &packet))
			return false;
	}
	begin_packet(&packet, GET_XID - 1, SYNC);
	put_text(&packet, path);
	if (!send_packet(fd, &packet))
		return false;
	begin_packet(&packet, GET_XID, GET_DATA);
	put_text(&packet, path);
	put_raw(&packet, "", 1); /* no watch */
	return send_packet(fd, &packet);
}

struct reply_header {
	int32_t xid;
	int64_t zxid;
	int32_t error;
} __attribute__((packed));

/* The first fields of a Stat. */
struct reply_stat {
	int64_t czxid, mzxid, ctime_ms;
} __attribute__((packed));

/* Returns the length of the next reply, below 0 if it does not come or is too long. */
static ssize_t read_reply(int fd, char *reply, size_t size, int64_t until_us)
{
	uint32_t len;

	if (read_whole(fd, (char *)&len, sizeof(len), until_us) != sizeof(len))
		return -1;
	len = be32toh(len);
	if (len < sizeof(struct reply_header) || len > size)
		return -1;
	return read_whole(fd, reply, len, until_us) == (ssize_t)len ? (ssize_t)len : -1;
}

static void read_mark(struct probe *probe, const char *body, size_t len)
{
	struct reply_stat stat;
	uint32_t data_len;

	if (len < sizeof(data_len))
		return;
	memcpy(&data_len, body, sizeof(data_len));
	data_len = (int32_t)be32toh(data_len) < 0 ? 0 : be32toh(data_len);
	if (len - sizeof(data_len) < sizeof(stat) + (size_t)data_len)
		return;
	memcpy(&stat, body + sizeof(data_len) + data_len, sizeof(stat));
	probe->mark = lc_mark_of((int64_t)be64toh((uint64_t)stat.czxid),
	                         (int64_t)be64toh((uint64_t)stat.ctime_ms), body + sizeof(data_len),
	                         data_len);
	probe->looked = probe->mark.czxid != 0;
}

static void ask_mark(struct probe *probe, int fd, const struct probe_question *question)
{
	int64_t until_us = limit_us();
	struct reply_header header;
	char reply[4096];
	ssize_t len;

	if (!send_question(fd, question))
		return;
	do {
		len = read_reply(fd, reply, sizeof(reply), until_us);
		if (len < 0)
			return;
		memcpy(&header, reply, sizeof(header));
	} while (be32toh((uint32_t)header.xid) != GET_XID);
	if (header.error == 0)
		read_mark(probe, reply + sizeof(header), (size_t)len - sizeof(header));
	else
		probe->looked = (int32_t)be32toh((uint32_t)header.error) == NO_NODE;
}

static bool read_rest(int fd, const struct connect_response *response)
{
	char rest[64];
	size_t len = be32toh(response->len) + sizeof(response->len) - sizeof(*response);

	return len <= sizeof(rest) && read_whole(fd, rest, len, limit_us()) == (ssize_t)len;
}

/* The server closes the connection when the session has ended. */
static void close_session(int fd)
{
	int64_t until_us = limit_us();
	struct packet packet;
	char rest[256];

	begin_packet(&packet, GET_XID + 1, CLOSE_SESSION);
	if (send_packet(fd, &packet))
		while (read_whole(fd, rest, sizeof(rest), until_us) > 0 &&
		       clock_now_us() < until_us)
			;
}

/* What a server grants to who asks for so much, in ms; 0: it gives no session. `question`: also
 * for the mark; or NULL. */
static int64_t ask_session(struct probe *probe, uint32_t timeout_ms,
                           const struct probe_question *question)
{
	struct connect_request request = {
		.len = htobe32(sizeof(request) - sizeof(request.len)),
		.timeout_ms = htobe32(timeout_ms),
		.password_len = htobe32(sizeof(request.password)),
	};
	struct connect_response response;
	char answer[sizeof(response) + 1];
	int64_t granted_ms = 0;
	int fd = -1;
	ssize_t n = ask(probe, &request, sizeof(request), answer, sizeof(answer), &fd);

	if (n == (ssize_t)sizeof(response)) {
		memcpy(&response, answer, sizeof(response));
		granted_ms = (int32_t)be32toh(response.timeout_ms);
		if (response.version != 0 || granted_ms <= 0)
			granted_ms = 0;
	}
	if (n > 0 && granted_ms == 0)
		probe->met = PROBE_STRANGE;
	if (granted_ms > 0 && read_rest(fd, &response)) {
		if (question)
			ask_mark(probe, fd, question);
		close_session(fd);
	}
	if (fd >= 0)
		close(fd);
	return granted_ms;
}

static void ask_sessions(struct probe *probe, const struct probe_question *question)
{
	struct probe copy = *probe;
	int64_t longest_ms = ask_session(&copy, LONGEST_MS, question);

	/* What conf has said stays, though nothing shows whose it is. */
	if (probe->has_conf && longest_ms == 0)
		return;
	*probe = copy;
	probe->longest_ms = longest_ms;
	if (!probe->has_conf && longest_ms > 0)
		probe->shortest_ms = ask_session(probe, SHORTEST_MS, NULL);
}

/* ---- the processes ---- */

static void probe_server(int fd, size_t number, char *address, const void *ctx)
{
	const struct probe_question *question = ctx;
	struct probe probe;

	(void)number;
	memset(&probe, 0, sizeof(probe)); /* its holes, too */
	probe.connections = -1;
	snprintf(probe.address, sizeof(probe.address), "%s", address);
	if (ask_srvr(&probe) && question) {
		ask_conf(&probe);
		ask_sessions(&probe, question);
	}
	(void)!write(fd, &probe, sizeof(probe));
}

/* ---- the daemon ---- */

void prober_init(struct prober *prober)
{
	*prober = (struct prober){.fd = -1};
}

void prober_stop(struct prober *prober)
{
	if (prober->fd >= 0)
		close(prober->fd);
	prober_init(prober);
}

/* Where the credentials are is wiped in a child: these children alone get a copy. */
int prober_begin(struct prober *prober, const char *addresses,
                 const struct probe_question *question)
{
	struct probe_question asks = {0};
	char credentials[CREDENTIALS_MAX + 1] = "";
	int r;

	prober_stop(prober);
	if (question)
		asks = *question;
	if (asks.credentials) {
		snprintf(credentials, sizeof(credentials), "%s", asks.credentials);
		asks.credentials = credentials;
	}
	r = helper_start("zklockfs-probe", addresses, probe_server, question ? &asks : NULL,
	                 &prober->fd);
	explicit_bzero(credentials, sizeof(credentials));
	return r;
}

bool prober_read(struct prober *prober, struct probe *ret_probe)
{
	ssize_t n = prober->fd < 0 ? 0 : read(prober->fd, ret_probe, sizeof(*ret_probe));

	if (n == (ssize_t)sizeof(*ret_probe))
		return true;
	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		prober_stop(prober);
	return false;
}

/* ---- what it means ---- */

const char *probe_text(const struct probe *probe)
{
	switch (probe->met) {
	case PROBE_USABLE:
		return "answers";
	case PROBE_UNREACHABLE:
		return strerror(probe->error);
	case PROBE_SILENT:
		return "takes the connection and does not answer";
	case PROBE_CLOSES:
		return "closes the connection: is it a port for TLS (zklockfs-tls(7)), or are "
		       "there "
		       "too many connections of this host (maxClientCnxns)?";
	case PROBE_SPEAKS_TLS:
		return "is a port for TLS, see zklockfs-tls(7)";
	case PROBE_STRANGE:
		return "no ZooKeeper server answers there";
	case PROBE_NO_QUORUM:
		return "does not serve now: too few servers of the ensemble serve (no quorum)";
	}
	return "?";
}

int64_t probe_tick(const struct probe *probe, bool *ret_certain)
{
	*ret_certain = true;
	if (probe->tick_ms > 0)
		return probe->tick_ms;
	*ret_certain = probe->shortest_ms > 0 && probe->longest_ms == 10 * probe->shortest_ms;
	return probe->shortest_ms / 2;
}

int probe_compare_versions(const char *a, const char *b)
{
	while (*a || *b) {
		char *a_end, *b_end;
		long x = strtol(a, &a_end, 10), y = strtol(b, &b_end, 10);

		if (x != y)
			return x < y ? -1 : 1;
		if (a_end == a && b_end == b)
			return 0;
		a = *a_end == '.' ? a_end + 1 : a_end;
		b = *b_end == '.' ? b_end + 1 : b_end;
	}
	return 0;
}

bool probe_forgets(const char *version)
{
	return *version && probe_compare_versions(version, PROBE_SAFE) < 0;
}
