/* SPDX-License-Identifier: MIT
 *
 * open_file.h - an open file or directory: what all kinds of them have, and what each kind can do.
 *
 *     struct text_file {
 *             struct open_file base;   (first)
 *             ...
 *     };
 *
 * The kernel names an open file by a number (`fh`), which means the same to a daemon that takes
 * over: a place in a table, and which of the files that have stood there.
 */
#ifndef FS_OPEN_FILE_H
#define FS_OPEN_FILE_H

#include "tree/node.h"

#include <sys/file.h>

struct frontend;
struct request;

/* More files than budgets let users open. */
#define OPEN_FILES_MAX (1 << 20)

/* All open files of a mount. A struct of zeros has none. */
struct open_files {
	struct open_file_slot *slots;
	uint32_t count, free_count; /* slots that are or were in use; those that are free */
	uint32_t room;
	uint32_t *free;
	uint32_t generation; /* of the last one */
};

struct open_file {
	const struct file_ops *ops;
	struct frontend *front;
	struct node *node; /* a reference; NULL: a directory's, which its requests name */
	uint64_t fh;
	uint64_t poller;      /* 0: nobody polls */
	struct record record; /* none of a file that is recorded with its hold */
};

/* The operations of a kind of file. Each answers the request. NULL: file.c says what happens. */
struct file_ops {
	size_t size;                     /* of the kind's struct */
	enum record_kind kind_of_record; /* RECORD_NONE: none of its own */
	bool described;                  /* each such file costs a descriptor */
	void (*read)(struct open_file *file, struct request *req, size_t size, off_t off);
	void (*readdir)(struct open_file *file, struct request *req, uint64_t ino, size_t size,
	                off_t off);
	void (*write)(struct open_file *file, struct request *req, const char *data, size_t size,
	              off_t off);
	void (*fsync)(struct open_file *file, struct request *req);
	/* `asked`: the events of poll(2). `poller`: the kernel's number of the poller; 0: nobody
	 * is woken later. */
	void (*poll)(struct open_file *file, struct request *req, unsigned asked, uint64_t poller);
	/* A process has closed a descriptor of the file. NULL: the kernel sends no FLUSH. */
	void (*flush)(struct open_file *file, struct request *req, uint64_t owner);
	void (*flock)(struct open_file *file, struct request *req, uint64_t owner, int op);
	void (*getlk)(struct open_file *file, struct request *req, uint64_t owner,
	              const struct flock *lock);
	void (*setlk)(struct open_file *file, struct request *req, uint64_t owner,
	              const struct flock *lock, bool wait);
	/* Without a request: ends what the kind has added to the base, when the file ends. NULL:
	 * nothing. */
	void (*close)(struct open_file *file);
	/* Without a request: saves or loads what the kind has added to the base. */
	void (*save_load)(struct codec *codec, struct open_file *file);
};

/* A file that the user opens; the user's budget pays. NULL: errno; ENFILE: there are too many. */
struct open_file *open_file_new(struct frontend *front, const struct file_ops *ops,
                                struct node *node, uid_t uid);
/* The last descriptor was closed, or the file could not be opened. */
void open_file_close(struct open_file *file);
/* NULL: the kernel has no file of that number. */
struct open_file *open_file_find(const struct frontend *front, uint64_t fh);
/* The next of all open files; *slot is 0 at first. NULL: there are no more. */
struct open_file *open_file_next(const struct frontend *front, uint32_t *slot);
void open_files_finish(struct open_files *files);

/* Saves or loads the table, then each file with its user and its number, then its node. To load,
 * it makes each file; open_files_loaded() follows when all are loaded. */
void open_files_save_load(struct codec *codec, struct open_files *files);
struct open_file *open_file_save_load(struct codec *codec, struct frontend *front,
                                      const struct file_ops *ops, struct open_file *file);
void open_file_node_save_load(struct codec *codec, struct open_file *file);
void open_files_loaded(struct codec *codec, struct open_files *files);
/* Saves or loads a file that has a record of its own: its kind's function. */
void open_file_record_save_load(struct codec *codec, struct frontend *front,
                                const struct file_ops *ops, struct record *record);
/* Takes a reference; NULL is none. */
void open_file_set_node(struct open_file *file, struct node *node);

#endif
