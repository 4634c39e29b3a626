/* SPDX-License-Identifier: MIT
 *
 * asking.h - what calls read: one request answers all who ask the same, users take turns, and the
 * number of requests under way does not slow the locks down. See asking.c.
 */
#ifndef LOCKCORE_ASKING_H
#define LOCKCORE_ASKING_H

#include "pure/gate.h"
#include "pure/queue.h"
#include "session/session.h"

struct lc_call;
struct lock;
struct reader;
struct reading;
typedef void reader_fn(struct reader *reader, struct reading *reading);

enum reading_kind {
	READING_LOCK,  /* a lock's data; that it is not there is said after a sync only */
	READING_NEW,   /* the same of a lock that may well be missing: the sync goes first */
	READING_ENTRY, /* an entry's data */
	READING_QUEUE, /* a lock's names, judged by how many may hold it; a sync as above */
};

/* What is read, and the answer. Each call brings a reading of its own, which waits at a gate. When
 * its turn comes, it takes the readers of all others that wait to read the same:
 *
 *   [GATE_WAITS] ---its turn---> [GATE_GOES] ---answered---> [GATE_OUT] ---all are told---> freed
 */
struct reading {
	struct lc *lc;
	enum reading_kind kind;
	unsigned hash;          /* of the path */
	struct reader *readers; /* who want the answer */
	struct gate_item turn;  /* at the gate of reads, or of lists */
	struct reading **list;  /* that it is in, or NULL */
	struct reading *prev, *next;
	bool with_data;       /* how many may hold it is not known */
	bool synced;          /* "not there" was said after a sync */
	unsigned outstanding; /* answers; and one while a reader is told */
	struct lock *watched; /* whose watch the read under way leaves, or NULL */
	/* The answer: */
	int error;       /* then nothing else is said */
	uint64_t serial; /* no other has it */
	struct ensemble_stat stat;
	char *data; /* LOCK, ENTRY; a byte 0 behind it */
	size_t data_len;
	char *text;         /* QUEUE: the memory of the names, */
	const char **names; /*   all of them, */
	size_t name_count;
	struct queue queue; /*   the entries among them */
	/* Made for the first reader that wants it: */
	struct lc_entry *entries; /* lock_info.c: these and the locks below */
	const char **locks;
	size_t lock_count;
	char path[];
};

/* Embedded in a call, or in a part of it; all zero: reads nothing. */
struct reader {
	struct lc_call *call;
	enum reading_kind kind;     /* of a call that reads one thing alone */
	struct reading *reading;    /* NULL: none */
	struct reader *prev, *next; /* in the reading's */
	struct gate_item told;      /* when its reading is answered */
	bool watch;                 /* the names of a queue, from then on */
	reader_fn *answer;
};

/* The number of slots of a lock, as its data said at that version. */
#define LC_KNOWN_SLOTS 64
struct known_slots {
	int64_t czxid, mzxid;
	unsigned slots;
};

#define READS_ROWS 256
struct reads {
	struct gate reads, lists;            /* readings that wait, and what is under way */
	struct gate due;                     /* readers that are to be told */
	struct reading *waiting[READS_ROWS]; /* those that wait, by hash */
	struct reading *unsent;              /* their turn has come; or they were cut off */
	struct reading *under_way;
	int64_t rest_until_us; /* no list before that, */
	int64_t tell_from_us;  /*   and nobody told */
	bool silent; /* the ensemble: a question was not answered in time, nor any since */
	struct known_slots known_slots[LC_KNOWN_SLOTS]; /* by czxid */
	uint64_t serial;                                /* of the last answer */
};

/* answer() comes once, from lc_process(), and tells what was asked of the ensemble after this
 * call. 0 or -ENOMEM. */
int reader_ask(struct reader *reader, struct lc_call *call, enum reading_kind kind,
               const char *path);
/* No answer() any more. Nothing, if it reads nothing. */
void reader_cancel(struct reader *reader);
/* The reading was answered: the reader is told in a moment. */
bool reader_is_answered(const struct reader *reader);

/* Remembers the number of slots that a lock's data has told. */
void asking_learn_slots(struct lc *lc, const struct ensemble_stat *stat, const void *data,
                        size_t len);

void asking_send(struct lc *lc);    /* all that may be asked now */
void asking_tell(struct lc *lc);    /* some of those that are answered */
int64_t asking_wait(struct lc *lc); /* until somebody is to be told, or the rest is over */
void asking_finish(struct lc *lc);  /* nobody asks any more */

#endif
