/* SPDX-License-Identifier: MIT
 *
 * Who a process is and whose descendant, by /proc: whatever its command is called, and
 * never by a number alone.
 */
#include "family.h"

#include "unit.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void identity(void **state)
{
	static const char *const names[] = {"plain", "a b", ") R 1 2 3 (", "((((", "))))", "", "a\nb: c", "\n"};
	struct ancestry ancestry;
	struct person self;

	(void)state;
	assert_true(family_ancestry(getpid(), &ancestry));
	assert_int_equal(ancestry.parent, getppid());
	assert_true(ancestry.start > 0);
	family_identify(getpid(), &self);
	assert_int_equal(self.pid, getpid());
	assert_true(self.start == ancestry.start);
	for (size_t i = 0; i < LENGTH(names); i++) {
		pid_t child = fork();
		struct person person;
		int status;

		if (child == 0) {
			prctl(PR_SET_NAME, names[i]);
			family_identify(getpid(), &person);
			_exit(person.pid != getpid() || person.start < self.start || strcmp(person.command, names[i]) != 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		expect(status == 0, "'%s' is somebody else", names[i]);
	}
}

static void nobody(void **state)
{
	struct person person;
	pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	for (size_t i = 0; i < 2; i++) {
		family_identify(i ? gone : 0, &person);
		assert_int_equal(person.pid, 0);
		assert_string_equal(person.command, "-");
		assert_null(family_lineage(&person));
	}
	/* The number is another process's now. */
	family_identify(getpid(), &person);
	person.start++;
	assert_null(family_lineage(&person));
}

static bool stands(const struct lineage *lineage, const struct person *person, int distance)
{
	return lineage_find(lineage, person->pid, person->start) == distance;
}

/* In a grandchild; which of its questions had the wrong answer. */
static unsigned char look_up(const struct person *top, const struct person *middle, bool orphan)
{
	struct person self;
	struct lineage *lineage;

	family_identify(getpid(), &self);
	lineage = family_lineage(&self);
	if (!lineage)
		return 1;
	if (!stands(lineage, &self, 0))
		return 2;
	if (!stands(lineage, middle, orphan ? -1 : 1))
		return 3;
	if (!stands(lineage, top, orphan ? -1 : 2))
		return 4;
	for (size_t i = 0; i < lineage->count; i++)
		if (lineage->of[i].pid == 1)
			return 5;
	self.start--;
	return stands(lineage, &self, -1) ? 0 : 6;
}

/* Main, a child, its child: while the one in the middle lives, and after it. */
static void descend(bool orphan)
{
	int results[2], end[2];
	unsigned char result = 255;
	struct person top;
	pid_t child;

	family_identify(getpid(), &top);
	assert_int_equal(pipe(results), 0);
	assert_int_equal(pipe(end), 0);
	child = fork();
	if (child == 0) {
		struct person middle;
		pid_t grandchild;

		family_identify(getpid(), &middle);
		grandchild = fork();
		if (grandchild == 0) {
			close(end[1]);
			if (orphan)
				(void)!read(end[0], &result, 1);   /* until its parent is gone */
			result = look_up(&top, &middle, orphan);
			_exit(write(results[1], &result, 1) != 1);
		}
		if (!orphan)
			waitpid(grandchild, NULL, 0);
		_exit(0);
	}
	close(results[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(end[1]);   /* only now has its child another parent */
	assert_int_equal(read(results[0], &result, 1), 1);
	assert_int_equal(result, 0);
	close(end[0]);
	close(results[0]);
}

static void descent(void **state)
{
	(void)state;
	descend(false);
	descend(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity),
		cmocka_unit_test(nobody),
		cmocka_unit_test(descent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
