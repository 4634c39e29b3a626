/* SPDX-License-Identifier: MIT
 *
 * clients.c - see clients.h. A row of these tables is right if the client itself was seen to wait,
 * or not to: tests/interop/families.py.
 */
#include "pure/clients.h"

#include <string.h>

enum { CURATOR = 1, CURATOR_RW = 2, KAZOO = 4, KAZOO_RW = 8, RUBY = 16 };

/* Not every client that would wait can share: LeaderLatch sleeps for ever when the data of the
 * entry before its own changes, as ours do when they hold.
 *
 * kazoo: its Lock ignores `__rlock__`, and waits for what ends in `__lock__`, whatever that means
 * to us. kazoo-rw: its ReadLock and WriteLock know `__rlock__`. */
const struct clients clients_all[CLIENTS_COUNT] = {
	{"curator", CURATOR, {{"", "-lock-", CURATOR}, {"", "-rlock-", CURATOR}}, false},
	{"curator-rw",
         CURATOR_RW,
         {{"", "__WRIT__", CURATOR_RW}, {"", "__READ__", CURATOR_RW}},
         true},
	{"kazoo", KAZOO, {{"", "__lock__", KAZOO | KAZOO_RW}, {"", "r__lock__", KAZOO}}, false},
	{"kazoo-rw",
         KAZOO_RW,
         {{"", "__lock__", KAZOO | KAZOO_RW}, {"", "__rlock__", KAZOO_RW}},
         false},
	{"ruby", RUBY, {{"ex", "-lock-", RUBY}, {"sh", "-rlock-", RUBY}}, false},
};

/* The first row that fits counts. */
static const struct clients_form forms[] = {
	{"-rlock-", LC_SHARED, ENDING, CURATOR, "-"},
	{"-lock-", LC_EXCLUSIVE, ENDING, CURATOR, "Curator's or go-zookeeper's mutex"},
	{"-lease-", LC_SHARED, ENDING, CURATOR, "Curator's InterProcessSemaphoreV2"},
	{"__lock__", LC_EXCLUSIVE, ENDING, KAZOO | KAZOO_RW, "kazoo"},
	{"__rlock__", LC_SHARED, ENDING, KAZOO | KAZOO_RW, "kazoo"},
	{"__WRIT__", LC_EXCLUSIVE, ENDING, CURATOR_RW, "Curator's read-write lock"},
	{"__READ__", LC_SHARED, ENDING, CURATOR_RW, "Curator's read-write lock"},
	{"-latch-", LC_EXCLUSIVE, ENDING, 0, "Curator's LeaderLatch"},
	{"lock-", LC_EXCLUSIVE, WHOLE, 0, "DistributedLock of .NET, or zk-lock of npm"},
	{"write-", LC_EXCLUSIVE, WHOLE, 0, "DistributedLock of .NET"},
	{"read-", LC_SHARED, WHOLE, 0, "DistributedLock of .NET"},
	{"semaphore-", LC_EXCLUSIVE, WHOLE, 0, "DistributedLock of .NET"},
	{"sh", LC_SHARED, WHOLE, RUBY, "zk-ruby's shared lock"},
	{"ex", LC_EXCLUSIVE, WHOLE, CURATOR | RUBY, "zk-ruby's exclusive lock"},
	{"", LC_EXCLUSIVE, ENDING, CURATOR, "-"},
};

const struct clients *clients_find(const char *name)
{
	for (size_t i = 0; i < CLIENTS_COUNT; i++)
		if (strcmp(clients_all[i].name, name) == 0)
			return &clients_all[i];
	return NULL;
}

static bool has_form(const char *name, size_t len, const struct clients_form *form)
{
	size_t size = strlen(form->text);

	return len >= size && (form->place == ENDING || len == size) &&
	       memcmp(name + len - size, form->text, size) == 0;
}

const struct clients_form *clients_form(const char *name, size_t len)
{
	const struct clients_form *form = forms;

	while (!has_form(name, len, form)) /* the last one fits */
		form++;
	return form;
}
