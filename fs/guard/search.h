/* SPDX-License-Identifier: MIT
 *
 * search.h - the guardian's children, which look for the processes that have lost a lock (look.h).
 * One child looks at the openers of lost slots, as soon as a slot is lost. Another child searches
 * all processes for those that have inherited a file. The guardian waits for neither: a child that
 * hangs at a process is left alone with that process, and another child goes on with the rest.
 *
 *   search_note() -> search_tend(), for the openers
 *   search_begin() -> search_tend(), every SEARCH_TEND_US -> true: all processes were looked at
 *
 * A search reads a little of each process first. A process that has more files comes again behind
 * all others, so that no process waits for the many files of another.
 */
#ifndef FS_SEARCH_H
#define FS_SEARCH_H

#include "guard/slots.h"

#define SEARCH_TEND_US 2000

struct searches;

/* NULL: no memory. All of it ends with its process. `fd`: tells the daemon that the guardian lives,
 * so no child keeps it open. */
struct searches *search_create(struct page *page, enum on_lost on_lost, int fd);

struct search_lost {
	int count;
	bool more;         /* some that were not lost when this was asked last */
	bool due;          /* openers wait for their signal */
	int64_t newest_us; /* when the newest of them was seen first */
	int64_t kill_us;   /* when the next opener is due for SIGKILL; INT64_MAX: none is */
};

struct search_lost search_note(struct searches *search);
/* A search begins for the losses that were noted. A search that is under way ends. */
void search_begin(struct searches *search);
/* Whether the children, but for those that hang, run before others from now on. */
void search_hurry(struct searches *search, bool hurry);
/* True: no search is under way. */
bool search_tend(struct searches *search);
/* In the search that is over some process was to be stopped, and may not be gone yet. */
bool search_found(const struct searches *search);
/* Some children hang. When they go on, they still stop the processes that they find. */
bool search_hangs(const struct searches *search);
/* How many children were ended by a signal of others, or since they had used too much time. */
unsigned long search_ended(const struct searches *search);

#endif
