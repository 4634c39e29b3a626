/* SPDX-License-Identifier: MIT */
#include "request/open_file.h"

#include "request/frontend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

struct open_file_slot {
	struct open_file *file; /* NULL: free */
	uint32_t generation;
};

/* Makes the table at least so long that it has this slot. 0, -ENOMEM or -ENFILE. */
static int make_room(struct open_files *files, uint32_t slot)
{
	uint32_t room = slot < files->room ? files->room : 2 * slot + 64, *free_slots;
	struct open_file_slot *slots;

	if (slot >= OPEN_FILES_MAX)
		return -ENFILE;
	if (room == files->room)
		return 0;
	slots = reallocarray(files->slots, room, sizeof(slots[0]));
	if (slots)
		files->slots = slots;
	free_slots = slots ? reallocarray(files->free, room, sizeof(free_slots[0])) : NULL;
	if (!free_slots)
		return -ENOMEM;
	files->free = free_slots;
	memset(slots + files->room, 0, (room - files->room) * sizeof(slots[0]));
	files->room = room;
	return 0;
}

static uint32_t slot_of_fh(uint64_t fh)
{
	return (uint32_t)fh;
}

static uint32_t generation_of_fh(uint64_t fh)
{
	return (uint32_t)(fh >> 32);
}

/* 0, -ENOMEM or -ENFILE. */
static int add_file(struct open_files *files, struct open_file *file)
{
	uint32_t slot = files->free_count > 0 ? files->free[files->free_count - 1] : files->count;
	int r = make_room(files, slot);

	if (r < 0)
		return r;
	if (files->free_count > 0)
		files->free_count--;
	else
		files->count++;
	if (++files->generation == 0) /* 0 is no file */
		files->generation = 1;
	files->slots[slot] = (struct open_file_slot){.file = file, .generation = files->generation};
	file->fh = (uint64_t)files->generation << 32 | slot;
	return 0;
}

static void remove_file(struct open_files *files, const struct open_file *file)
{
	files->slots[slot_of_fh(file->fh)] = (struct open_file_slot){0};
	files->free[files->free_count++] = slot_of_fh(file->fh);
}

/* ---- files ---- */

/* A file without a number and a node, which the caller gives it. NULL: errno. */
static struct open_file *alloc_file(struct frontend *front, const struct file_ops *ops, uid_t uid)
{
	struct open_file *file = budget_alloc(&front->files, uid, ops->size);

	if (file && ops->described && budget_add(file, BUDGET_DESCRIPTOR) < 0) {
		budget_free(file);
		errno = ENFILE;
		return NULL;
	}
	if (!file)
		return NULL;
	file->ops = ops;
	file->front = front;
	return file;
}

void open_file_set_node(struct open_file *file, struct node *node)
{
	file->node = node;
	if (node)
		node_ref(node);
}

static void begin_record(struct open_file *file, uint64_t number)
{
	if (file->ops->kind_of_record != RECORD_NONE)
		record_begin(&file->front->records, &file->record, file->ops->kind_of_record,
		             number);
}

struct open_file *open_file_new(struct frontend *front, const struct file_ops *ops,
                                struct node *node, uid_t uid)
{
	struct open_file *file = alloc_file(front, ops, uid);
	int r = file ? add_file(&front->open_files, file) : -errno;

	if (r < 0) {
		budget_free(file);
		errno = -r;
		return NULL;
	}
	open_file_set_node(file, node);
	begin_record(file, file->fh);
	return file;
}

void open_file_close(struct open_file *file)
{
	struct frontend *front = file->front;

	if (file->ops->close)
		file->ops->close(file);
	record_end(&file->record);
	remove_file(&front->open_files, file);
	if (file->node)
		node_unref(front->nodes, file->node);
	budget_free(file);
}

struct open_file *open_file_find(const struct frontend *front, uint64_t fh)
{
	const struct open_files *files = &front->open_files;
	const struct open_file_slot *slot =
		slot_of_fh(fh) < files->count ? &files->slots[slot_of_fh(fh)] : NULL;

	return slot && slot->generation == generation_of_fh(fh) ? slot->file : NULL;
}

struct open_file *open_file_next(const struct frontend *front, uint32_t *slot)
{
	struct open_file *file = NULL;

	while (!file && *slot < front->open_files.count)
		file = front->open_files.slots[(*slot)++].file;
	return file;
}

void open_files_finish(struct open_files *files)
{
	free(files->slots);
	free(files->free);
	*files = (struct open_files){0};
}

/* ---- over a reload ---- */

void open_files_save_load(struct codec *codec, struct open_files *files)
{
	CODEC_RANGE(codec, files->count, 0, OPEN_FILES_MAX);
	CODEC_U32(codec, files->generation);
	if (codec->loads && files->count > 0 && make_room(files, files->count - 1) < 0)
		codec->give_up(strerror(ENOMEM));
}

void open_files_loaded(struct codec *codec, struct open_files *files)
{
	if (codec->loads)
		for (uint32_t i = files->count; i-- > 0;)
			if (!files->slots[i].file)
				files->free[files->free_count++] = i;
}

/* Puts a file that was read from a record into the slot of its number. */
static void put_file(struct codec *codec, struct open_files *files, struct open_file *file)
{
	uint32_t slot = slot_of_fh(file->fh);

	if (slot >= files->count || files->slots[slot].file || generation_of_fh(file->fh) == 0)
		codec->give_up("the state has two open files with one number");
	files->slots[slot] = (struct open_file_slot){
		.file = file,
		.generation = generation_of_fh(file->fh),
	};
}

struct open_file *open_file_save_load(struct codec *codec, struct frontend *front,
                                      const struct file_ops *ops, struct open_file *file)
{
	uid_t uid = file ? budget_uid(file) : 0;

	CODEC_U32(codec, uid);
	if (codec->loads) {
		file = alloc_file(front, ops, uid);
		if (!file)
			codec->give_up(strerror(errno));
		begin_record(file, 0);
	}
	CODEC_64(codec, file->fh);
	if (codec->loads)
		put_file(codec, &front->open_files, file);
	return file;
}

void open_file_node_save_load(struct codec *codec, struct open_file *file)
{
	struct node *node = node_save_load(codec, file->front->nodes, file->node);

	if (codec->loads)
		open_file_set_node(file, node);
}

void open_file_record_save_load(struct codec *codec, struct frontend *front,
                                const struct file_ops *ops, struct record *record)
{
	struct open_file *file =
		open_file_save_load(codec, front, ops, RECORD_IN(record, struct open_file));

	if (!ops->readdir)
		open_file_node_save_load(codec, file);
	ops->save_load(codec, file);
}
