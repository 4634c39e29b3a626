/* SPDX-License-Identifier: MIT
 *
 * resolve.h - from the servers' names to their addresses, in processes of their own: looking names
 * up may take minutes, and the loop waits for nothing.
 */
#ifndef FS_RESOLVE_H
#define FS_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>

#define RESOLVE_DEFAULT_PORT "2181"
/* A pipe takes so much as a whole. */
#define RESOLVER_LINE 4096

/* What is heard: a line for each name as soon as it is known. */
enum resolver_answer {
	RESOLVER_FOUND = '+',   /* "10.0.0.1:2181,[2001:db8::2]:2182" */
	RESOLVER_NONE = '-',    /* the name has no address: "zk1: Name or service not known" */
	RESOLVER_UNKNOWN = '?', /* the name service does not say: the same */
};

/* `name`: its place in the list. `text` may be changed. */
typedef void resolver_heard_fn(void *ctx, enum resolver_answer answer, size_t name, char *text);

struct resolver {
	int fd; /* readable: resolver_read(); -1: not at work */
	size_t len;
	char text[RESOLVER_LINE + 1]; /* a line as far as it was read */
};

void resolver_init(struct resolver *resolver);
/* "zk1,zk2:2182" as checked by options.c. 0 or -errno. */
int resolver_begin(struct resolver *resolver, const char *names);
/* Tells heard() what has come. True: nothing more will come, and the resolver is not at work. */
bool resolver_read(struct resolver *resolver, resolver_heard_fn *heard, void *ctx);
/* At work or not. The processes end when they find that nobody listens; the caller reaps. */
void resolver_stop(struct resolver *resolver);

/* Whether they are all addresses, for which there is nothing to look up. */
bool resolve_are_numbers(const char *names);
/* How many a list "a,b,c" has. */
size_t resolve_count(const char *list);
/* All addresses of the lists, of which some may be NULL: each once, in an order that says nothing.
 * NULL: there is none, or no memory. */
char *resolve_join(const char *const *lists, size_t count);

#endif
