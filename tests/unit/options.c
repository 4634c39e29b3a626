/* SPDX-License-Identifier: MIT
 *
 * The command line as people, mount(8), fstab and systemd write it: the resulting options,
 * and for each refusal the status and one line on stderr.
 */
#include "setup/options.h"

#include "host/args.h"
#include "told.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_MAX 16

struct run {
	bool ok;
	int status;
	struct options options;
	char out[8192], err[8192];
};

/* Points a standard descriptor at a file without a name; returns the old one. */
static int capture(int fd, FILE *stream, int *ret_saved)
{
	int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (file < 0)
		file = fileno(tmpfile());
	assert_true(file >= 0);
	fflush(stream);
	*ret_saved = dup(fd);
	assert_true(dup2(file, fd) == fd);
	return file;
}

static void restore(int fd, FILE *stream, int file, int saved, char *ret_text, size_t size)
{
	ssize_t n;

	fflush(stream);
	dup2(saved, fd);
	close(saved);
	n = pread(file, ret_text, size - 1, 0);
	ret_text[n > 0 ? n : 0] = '\0';
	close(file);
}

/* args[] ends with NULL; "zklockfs" comes before it. */
static void parse(struct run *run, const char *const *args)
{
	char *argv[ARGS_MAX] = {(char *)"zklockfs"};
	int argc = 1, out, err, saved_out, saved_err;

	for (; *args; args++) {
		assert_true(argc < ARGS_MAX - 1);
		argv[argc++] = (char *)*args;
	}
	memset(run, 0, sizeof(*run));
	run->status = -1;
	out = capture(STDOUT_FILENO, stdout, &saved_out);
	err = capture(STDERR_FILENO, stderr, &saved_err);
	run->ok = options_parse(argc, argv, NULL, &run->options, &run->status);
	restore(STDERR_FILENO, stderr, err, saved_err, run->err, sizeof(run->err));
	restore(STDOUT_FILENO, stdout, out, saved_out, run->out, sizeof(run->out));
}

#define PARSE(run, ...) parse(run, (const char *const[]){__VA_ARGS__, NULL})

#define ACCEPT(run, ...)                             \
	do {                                         \
		PARSE(run, __VA_ARGS__);             \
		expect((run)->ok, "%s", (run)->err); \
		assert_string_equal((run)->err, ""); \
		assert_string_equal((run)->out, ""); \
	} while (0)

static struct told told(const struct options *options)
{
	struct told told;

	assert_int_equal(told_read(options, &told), 0);
	return told;
}

static void expect_always(const struct told *told)
{
	assert_int_equal(told->default_permissions, 1);
	assert_int_equal(told->nosuid, 1);
	assert_int_equal(told->nodev, 1);
	assert_int_equal(told->noexec, 1);
	assert_string_equal(told->subtype, "zklockfs");
	assert_int_equal(told->unknown, 0);
}

static void defaults(void **state)
{
	char host[256] = "";
	struct run run;
	struct told what;

	(void)state;
	gethostname(host, sizeof(host) - 1);
	ACCEPT(&run, "zk1", "/usr");
	assert_string_equal(run.options.source, "zk1");
	assert_string_equal(run.options.servers, "zk1");
	assert_string_equal(run.options.root, "/locks");
	assert_true(run.options.make_root);
	assert_string_equal(run.options.mountpoint, "/usr");
	assert_false(run.options.foreground);
	assert_false(run.options.debug);
	assert_int_equal(run.options.session_timeout_us, 15000000);
	assert_int_equal(run.options.tick_time_us, 2000000);
	assert_int_equal(run.options.connect_timeout_us, 10000000);
	assert_int_equal(run.options.retry_us, 0);
	assert_int_equal(run.options.drain_us, 60000000);
	assert_null(run.options.credentials);
	assert_int_equal(run.options.uid, getuid());
	assert_int_equal(run.options.gid, getgid());
	assert_int_equal(run.options.umask, 022);
	assert_string_equal(run.options.host, host);
	assert_int_equal(run.options.on_lost, ON_LOST_NONE);
	assert_string_equal(run.options.fuse_args.argv[0], "zklockfs");
	what = told(&run.options);
	expect_always(&what);
	assert_string_equal(what.fsname, "zk1");
	assert_int_equal(what.allow_other, geteuid() == 0);
	assert_int_equal(what.ro, 0);
	assert_int_equal(what.noatime, 0);
	assert_null(what.context);
	told_free(&what);
	options_free(&run.options);
}

static void every_option(void **state)
{
	struct run run;
	struct told what;

	(void)state;
	ACCEPT(&run, "-o",
	       ("session_timeout=30s,tick_time=500ms,connect_timeout=1m,mkroot,host=web1,"
	        "clients=kazoo-rw,retry=5m,drain=0s,uid=1000,gid=4294967294,umask=0"),
	       "-oallow_other,ro,noatime,context=system_u:object_r:x_t:s0", "zk1:2181/team/locks",
	       "/usr", "-f");
	assert_int_equal(run.options.session_timeout_us, 30000000);
	assert_int_equal(run.options.tick_time_us, 500000);
	assert_int_equal(run.options.connect_timeout_us, 60000000);
	assert_int_equal(run.options.retry_us, 300000000);
	assert_int_equal(run.options.drain_us, 0);
	assert_int_equal(run.options.uid, 1000);
	assert_int_equal(run.options.gid, 4294967294);
	assert_int_equal(run.options.umask, 0);
	assert_true(run.options.make_root);
	assert_string_equal(run.options.host, "web1");
	assert_string_equal(run.options.clients, "kazoo-rw");
	assert_string_equal(run.options.source, "zk1:2181/team/locks");
	assert_string_equal(run.options.servers, "zk1:2181");
	assert_string_equal(run.options.root, "/team/locks");
	assert_true(run.options.foreground);
	assert_false(run.options.debug);
	what = told(&run.options);
	expect_always(&what);
	assert_int_equal(what.allow_other, 1);
	assert_int_equal(what.ro, 1);
	assert_int_equal(what.noatime, 1);
	assert_string_equal(what.context, "system_u:object_r:x_t:s0");
	told_free(&what);
	options_free(&run.options);
}

static void debug_stays_in_the_foreground(void **state)
{
	static const char *const ways[][2] = {{"-d", NULL}, {"-odebug", NULL}};

	(void)state;
	for (size_t i = 0; i < LENGTH(ways); i++) {
		struct run run;

		ACCEPT(&run, ways[i][0], "zk1", "/usr");
		assert_true(run.options.foreground);
		assert_true(run.options.debug);
		options_free(&run.options);
	}
}

static void what_happens_on_loss(void **state)
{
	static const struct {
		const char *option;
		enum on_lost on_lost;
	} rows[] = {
		{"on_lost=none", ON_LOST_NONE},
		{"on_lost=term", ON_LOST_TERM},
		{"on_lost=kill", ON_LOST_KILL},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct run run;

		ACCEPT(&run, "-o", rows[i].option, "zk1", "/usr");
		assert_int_equal(run.options.on_lost, rows[i].on_lost);
		options_free(&run.options);
	}
}

static void the_last_of_two_counts(void **state)
{
	struct run run;
	struct told what;

	(void)state;
	ACCEPT(&run, "-o", "host=a,host=b", "-o", "session_timeout=20s", "-o",
	       "session_timeout=30s", "zk1", "/usr");
	assert_string_equal(run.options.host, "b");
	assert_int_equal(run.options.session_timeout_us, 30000000);
	options_free(&run.options);

	/* Of opposites, too. */
	ACCEPT(&run, "-o", "ro,rw,noatime,relatime,nokeeper,keeper,noprotect,protect", "zk1",
	       "/usr");
	what = told(&run.options);
	assert_false(run.options.read_only || what.ro || what.noatime);
	told_free(&what);
	assert_true(run.options.supervisor && run.options.protect);
	options_free(&run.options);
	ACCEPT(&run, "-o", "rw,ro,atime,noatime,protect,noprotect", "zk1", "/usr");
	what = told(&run.options);
	assert_true(run.options.read_only && what.ro && what.noatime);
	told_free(&what);
	assert_false(run.options.protect);
	options_free(&run.options);
}

/* As mount(8) calls its helper: the options come last, with those of fstab. */
static void options_of_userspace(void **state)
{
	static const char *const lists[] = {
		"rw",
		"defaults",
		"_netdev",
		"nofail",
		"auto",
		"noauto",
		"user",
		"user=alice",
		"uhelper=udisks2",
		"helper=fuse.zklockfs",
		"silent",
		"loud",
		"dirsync",
		"nomand",
		"noiversion",
		"symfollow",
		"",
		"_netdev,,nofail",
		",_netdev,",
		"nouser",
		"users",
		"owner",
		"group",
		"comment=x",
		"x-systemd.automount",
		"x-systemd.requires=network-online.target",
		"x-gvfs-hide",
		"dev",
		"nodev",
		"suid",
		"nosuid",
		"exec",
		"noexec",
		"atime",
		"async",
		"sync",
		"default_permissions",
		"rw,dev,suid,exec,_netdev,nofail,user,x-systemd.mount-timeout=30,comment=y",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(lists); i++) {
		struct run run;
		struct told what;

		ACCEPT(&run, "zk1/locks", "/usr", "-o", lists[i]);
		what = told(&run.options);
		/* dev, suid and exec have no effect. */
		expect_always(&what);
		assert_int_equal(what.ro, 0);
		told_free(&what);
		options_free(&run.options);
	}
}

static void servers_and_roots(void **state)
{
	static const struct {
		const char *source, *servers, *root;
		bool make_root;
	} rows[] = {
		{"zk1", "zk1", "/locks", true},
		{"zk1/locks", "zk1", "/locks", true},
		{"zk1/locks/", "zk1", "/locks", true},
		{"zk1/locks///", "zk1", "/locks", true},
		{"zk1/lock", "zk1", "/lock", false},
		{"zk1/locks/a", "zk1", "/locks/a", false},
		{"zk1:1", "zk1:1", "/locks", true},
		{"zk1:65535", "zk1:65535", "/locks", true},
		{"zk1:2181,zk2:2182,zk3/team", "zk1:2181,zk2:2182,zk3", "/team", false},
		{"zk1/try/a.b:1/zookeeper", "zk1", "/try/a.b:1/zookeeper", false},
		{"10.0.0.1:2181", "10.0.0.1:2181", "/locks", true},
		{"[::1]", "[::1]", "/locks", true},
		{"[::1]:2181", "[::1]:2181", "/locks", true},
		{"[2001:db8::2]:2182,[::1],zk1:1/a", "[2001:db8::2]:2182,[::1],zk1:1", "/a", false},
		{"[fe80::1%eth0]:2181", "[fe80::1%eth0]:2181", "/locks", true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct run run;
		struct told what;

		ACCEPT(&run, rows[i].source, "/usr");
		assert_string_equal(run.options.source, rows[i].source);
		assert_string_equal(run.options.servers, rows[i].servers);
		assert_string_equal(run.options.root, rows[i].root);
		assert_int_equal(run.options.make_root, rows[i].make_root);
		/* mount and df show the source; its commas must not begin another option. */
		what = told(&run.options);
		expect_always(&what);
		assert_string_equal(what.fsname, rows[i].source);
		told_free(&what);
		options_free(&run.options);
	}
}

/* An option in the source stays a part of the name. */
static void fsname_cannot_bring_options(void **state)
{
	struct run run;
	struct told what;

	(void)state;
	ACCEPT(&run, "zk1,ro,noatime/a\\b", "/usr");
	assert_string_equal(run.options.root, "/a\\b");
	what = told(&run.options);
	expect_always(&what);
	assert_string_equal(what.fsname, "zk1,ro,noatime/a\\b");
	assert_int_equal(what.ro, 0);
	assert_int_equal(what.noatime, 0);
	told_free(&what);
	options_free(&run.options);
}

static void mount_points_are_absolute(void **state)
{
	char directory[] = "/tmp/zklockfs-options-XXXXXX", real[PATH_MAX], path[PATH_MAX];
	struct run run;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_non_null(realpath(directory, real));
	snprintf(path, sizeof(path), "%s/link", directory);
	assert_int_equal(symlink(directory, path), 0);
	ACCEPT(&run, "zk1", path);
	assert_string_equal(run.options.mountpoint, real);
	options_free(&run.options);
	snprintf(path, sizeof(path), "%s/../%s/.", directory, strrchr(directory, '/') + 1);
	ACCEPT(&run, "zk1", path);
	assert_string_equal(run.options.mountpoint, real);
	options_free(&run.options);
	snprintf(path, sizeof(path), "%s/link", directory);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(directory), 0);
}

/* The line names the program, once, and ends with a newline. */
static void expect_refused(const struct run *run, int status, const char *word, const char *what)
{
	size_t len = strlen(run->err);

	expect(!run->ok, "%s is accepted", what);
	expect(run->status == status, "%s: status %d", what, run->status);
	assert_string_equal(run->out, "");
	expect(len > 0 && strchr(run->err, '\n') == run->err + len - 1, "%s: '%s'", what, run->err);
	expect(strstr(run->err, word) != NULL, "%s: '%s'", what, run->err);
	expect(strncmp(run->err, "zklockfs: ", 10) == 0 || strncmp(run->err, "fuse: ", 6) == 0,
	       "%s: '%s'", what, run->err);
	expect(!strstr(run->err + 1, "zklockfs: "), "%s: named twice: '%s'", what, run->err);
	/* For wrong usage, the line says where to read more. */
	expect(!!strstr(run->err, "zklockfs --help") == (status == 1 && run->err[0] == 'z'),
	       "%s: '%s'", what, run->err);
}

static void bad_usage(void **state)
{
	static const struct {
		const char *args[6];
		const char *word;
	} rows[] = {
		{{NULL}, "no servers"},
		{{"zk1"}, "no mount point"},
		{{"zk1", "/usr", "more"}, "-o more;"},
		{{"audit", "zk1", "/usr"}, "-o audit;"},
		{{"zk1", "audit,retry=1m", "/usr"}, "-o audit,retry=1m;"},
		{{"zk1", "/usr", "on_lost=kill"}, "-o on_lost=kill;"},
		{{"hots=a", "zk1", "/usr"}, "-o hots=a;"},
		{{"-x", "zk1", "/usr"}, "'-x'"},
		{{"--nonsense", "zk1", "/usr"}, "'--nonsense'"},
		{{"-o", "nonsense", "zk1", "/usr"}, "'nonsense'"},
		{{"-o", "nonsense=1", "zk1", "/usr"}, "'nonsense=1'"},
		{{"-o", "ro,nonsense,bad", "zk1", "/usr"}, "'nonsense'"},
		{{"-o", "fsname=x", "zk1", "/usr"}, "'fsname=x'"},
		{{"-o", "hosts=x", "zk1", "/usr"}, "'hosts=x'"},
		{{"-o", "mkroot=1", "zk1", "/usr"}, "'mkroot=1': mkroot takes no value"},
		{{"-o", "ro=yes", "zk1", "/usr"}, "'ro=yes': ro takes no value"},
		{{"-o", "allow_other=1", "zk1", "/usr"},
	         "'allow_other=1': allow_other takes no value"},
		{{"-o", "context", "zk1", "/usr"},
	         "'context': context needs a value, as in context=..."},
		{{"-o", "ro,retry", "zk1", "/usr"}, "'retry': retry needs a value"},
		{{"-o", "hos", "zk1", "/usr"}, "unknown option 'hos' (did you mean host?);"},
		{{"-o", "sesion_timeout=5s", "zk1", "/usr"},
	         "unknown option 'sesion_timeout=5s' (did you mean session_timeout?);"},
		{{"-o", "_netdv", "zk1", "/usr"}, "'_netdv' (did you mean _netdev?);"},
		{{"--chek", "zk1", "/usr"}, "'--chek' (did you mean --check?);"},
		{{"-o", "nonsense,ro=1,adit,retry", "zk1", "/usr"},
	         "unknown option 'nonsense'; 'ro=1': ro takes no value; unknown option 'adit' (did "
	         "you mean audit?); 'retry': retry needs a value, as in retry=...;"},
		{{"-o", "hostname=a", "zk1", "/usr"}, "unknown option 'hostname=a';"},
		{{"-o", "host=", "zk1", "/usr"}, "host="},
		{{"-o", "clients=", "zk1", "/usr"}, "clients=: must be one of curator, curator-rw"},
		{{"-o", "clients=Kazoo", "zk1", "/usr"}, "kazoo, kazoo-rw, ruby"},
		{{"-o", "on_lost=", "zk1", "/usr"}, "on_lost="},
		{{"-o", "on_lost=KILL", "zk1", "/usr"}, "on_lost=KILL"},
		{{"-o", "on_lost=killed", "zk1", "/usr"}, "on_lost=killed"},
		{{"-o", "on_lost", "zk1", "/usr"},
	         "'on_lost': on_lost needs a value, as in on_lost=..."},
		{{"-o", "credentials=", "zk1", "/usr"}, "credentials= is empty"},
		{{"-o", "uid=", "zk1", "/usr"}, "uid="},
		{{"-o", "uid=root", "zk1", "/usr"},
	         "uid=root: must be a number, at most 4294967294"},
		{{"-o", "user_id=0", "zk1", "/usr"}, "unknown option 'user_id=0'"},
		{{"-o", "ro, on_lost=kill", "zk1", "/usr"}, "' on_lost=kill': commas separate"},
		{{"-o", "ro ,on_lost=kill", "zk1", "/usr"}, "'ro ': commas separate"},
		{{"-o", "uid=-1", "zk1", "/usr"}, "uid=-1"},
		{{"-o", "uid=4294967295", "zk1", "/usr"}, "uid=4294967295"},
		{{"-o", "gid=99999999999999999999", "zk1", "/usr"}, "gid=9999"},
		{{"-o", "umask=8", "zk1", "/usr"},
	         "umask=8: must be an octal number, at most 0777"},
		{{"-o", "umask=1000", "zk1", "/usr"}, "umask=1000"},
		{{"-o"}, "-o"},
		{{"zk1", "/usr", "-o"}, "-o"},
		{{"", "/usr"}, "server list"},
		{{"/locks", "/usr"}, "server list"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char what[32];
		struct run run;

		snprintf(what, sizeof(what), "row %zu", i);
		parse(&run, rows[i].args);
		expect_refused(&run, 1, rows[i].word, what);
	}
}

static void bad_servers(void **state)
{
	static const char *const sources[] = {
		":2181",
		"zk1:",
		"zk1:x",
		"zk1:0",
		"zk1:65536",
		"zk1:99999",
		"zk1:100000",
		"zk1:-1",
		"zk1:+1",
		"zk1: 1",
		"zk1:2181:2181",
		",",
		"zk1,",
		",zk1",
		"zk1,,zk2",
		"zk1:2181,zk2:x",
		"zk1 ,zk2",
		"user@zk1",
		"zk1\\",
		"zk]",
		"::1",
		"2001:db8::2",
		"[]",
		"[]:2181",
		"[::1",
		"[::1]x",
		"[::1]:",
		"[::1]:0",
		"[::1]2181",
		"zk1:/locks",
		":/locks",
		",/locks",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(sources); i++) {
		struct run run;

		PARSE(&run, sources[i], "/usr");
		expect_refused(&run, 1, "server list", sources[i]);
	}
}

/* The line says why, and what to write instead. */
static void sources_with_their_reason(void **state)
{
	static const struct {
		const char *source, *mountpoint, *why;
	} rows[] = {
		{"a:1/locks,b:2/locks", "/usr", "ROOT stands once, behind the last server"},
		{"a/locks,b/locks", "/usr", "ROOT stands once, behind the last server"},
		{"a:1/locks,b:2", "/usr", "ROOT stands once, behind the last server"},
		{"::1", "/usr", "write IPv6 in brackets"},
		{"zk1,2001:db8::2/locks", "/usr", "write IPv6 in brackets"},
		{"zk1:2181:2181", "/usr", "must be host[:port]"},
		{"[::@]:2181", "/usr", "must be host[:port]"},
		{"z\nk\x7fs/locks", "/usr", "bad server list 'z?k?s': must be host[:port]"},
		{"zk1//locks", "/usr", "'//locks' cannot be a root: a name in it is empty"},
		{"zk1/a//b", "/usr", "a name in it is empty"},
		{"zk1/../x", "/usr", "'/../x' cannot be a root: a name in it begins with a dot"},
		{"zk1/a/.zklockfs", "/usr", "begins with a dot"},
		{"zk1/zookeeper", "/usr", "ZooKeeper keeps /zookeeper for itself"},
		{"zk1/zookeeper/x", "/usr", "ZooKeeper keeps /zookeeper for itself"},
		{"zk1/a\x7f", "/usr", "ZooKeeper does not take a character in it"},
		{"zk1/a\r", "/usr",
	         "'/a?' cannot be a root: ZooKeeper does not take a character in it"},
		{"zk1/a\nb", "/usr", "'/a?b' cannot be a root"},
		{"zk1/locks ", "/usr", "'/locks ' cannot be a root: it ends with a blank"},
		{"zk1\n", "/usr", "bad server list 'zk1?'"},
		{"zk1/", "/usr", "the whole ensemble cannot be mounted"},
		{"zk1//", "/usr", "the whole ensemble cannot be mounted"},
		{"zk1:2181,zk2/", "/usr", "such as zk1:2181,zk2/locks"},
		{"zk://zk1:2181/locks", "/usr", "nothing like zk:// stands in front"},
		{"zookeeper://zk1,zk2", "/usr", "nothing like zk:// stands in front"},
		{"/mnt/locks", "zk1:2181/locks", "SERVERS[/ROOT] comes first, then MOUNTPOINT"},
		{"/locks", "/usr", "ROOT stands behind the servers"},
		{"", "/usr", "server list '': it is empty"},
		{"zk1, zk2/locks", "/usr", "list 'zk1, zk2': no blank stands behind a comma"},
	};
	static const char *const fronts[] = {"debug", "mkroot"};
	struct run run;

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH(rows); i++) {
		PARSE(&run, "-o", fronts[i % 2], rows[i / 2].source, rows[i / 2].mountpoint);
		expect_refused(&run, 1, rows[i / 2].why, rows[i / 2].source);
	}
	PARSE(&run, "--check", "/usr");
	expect_refused(
		&run, 32,
		"mounted there; /etc/zklockfs/usr.conf: No such file or directory; to check what",
		"a mount point, and no servers");
	PARSE(&run, "--check", "zklockfs@proc-self");
	expect_refused(&run, 1,
	               "'zklockfs@proc-self' is the name of a unit: name the mount point, "
	               "/proc/self;",
	               "a unit");
	PARSE(&run, "--reload");
	expect_refused(&run, 1, "no mount point given", "--reload alone");
}

static void bad_durations(void **state)
{
	static const char *const names[] = {"session_timeout", "tick_time", "connect_timeout",
	                                    "retry", "drain"};
	static const char *const values[] = {
		"",
		"15",
		"s",
		"1.5s",
		"-1s",
		"15 s",
		"1h30m",
		"x",
		"0s",
		"0ms",
		"99999999999999999999s",
		"25h",
		"1441m",
		"86401s",
		"86400001ms",
	};
	struct run run;

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++) {
		char option[64];

		for (size_t k = 0; k < LENGTH(values); k++) {
			if (i >= 3 && values[k][0] == '0')
				continue; /* 0 is allowed for these */
			snprintf(option, sizeof(option), "%s=%s", names[i], values[k]);
			PARSE(&run, "-o", option, "zk1", "/usr");
			expect_refused(&run, 1, option, option);
			expect(strstr(run.err, k < 8 || k == 10 ? "not a duration" : "24h") != NULL,
			       "%s", run.err);
		}
		snprintf(option, sizeof(option), "%s=24h", names[i]);
		ACCEPT(&run, "-o", option, "zk1", "/usr");
		options_free(&run.options);
		snprintf(option, sizeof(option), "%s=1ms", names[i]);
		ACCEPT(&run, "-o", option, "zk1", "/usr");
		options_free(&run.options);
	}
}

static void bad_credentials(void **state)
{
	struct run run;

	(void)state;
	PARSE(&run, "-o", "credentials=/nonexistent", "zk1", "/usr");
	expect_refused(&run, 32, "No such file", "no file");
	PARSE(&run, "-o", "credentials=/", "zk1", "/usr");
	expect_refused(&run, 32, "regular", "a directory");
	PARSE(&run, "-o", "credentials=secret", "zk1", "/usr");
	expect_refused(&run, 1, "must be absolute", "a relative path");
}

static void what_cannot_be_mounted(void **state)
{
	static const struct {
		const char *source, *mountpoint, *word;
	} rows[] = {
		{"zk1", "/nonexistent/mount", "/nonexistent/mount"},
		{"zk1", "", "No such file"},
		{"zk1", "/", "/: a mount there can be neither seen nor taken off"},
		{"zk1", "/usr/..", "a mount there can be neither seen nor taken off"},
		{"zk1", "/dev/null", "/dev/null: Not a directory"},
		{"zk1", "/dev/null/x", "Not a directory"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char what[64];
		struct run run;

		snprintf(what, sizeof(what), "%s on '%s'", rows[i].source, rows[i].mountpoint);
		PARSE(&run, rows[i].source, rows[i].mountpoint);
		expect_refused(&run, 32, rows[i].word, what);
	}
}

/* The help is printed, whatever else is wrong on the command line. */
static void help_and_version(void **state)
{
	static const char *const words[] = {
		"usage: zklockfs ", "SERVERS",          "MOUNTPOINT", "session_timeout=",
		"tick_time=",       "connect_timeout=", "retry=",     "drain=",
		"credentials=",     "mkroot",           "host=",      "allow_other",
	};
	static const char *const helps[] = {"-h", "--help"};
	static const char *const versions[] = {"-V", "--version"};
	struct run run;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		PARSE(&run, helps[i]);
		assert_false(run.ok);
		assert_int_equal(run.status, 0);
		assert_string_equal(run.err, "");
		for (size_t k = 0; k < LENGTH(words); k++)
			expect(strstr(run.out, words[k]) != NULL, "no %s", words[k]);
		PARSE(&run, "-o", "nonsense", helps[i], "zk1", "/nonexistent", "more");
		assert_int_equal(run.status, 0);
		assert_string_equal(run.err, "");

		PARSE(&run, versions[i]);
		assert_false(run.ok);
		assert_int_equal(run.status, 0);
		assert_string_equal(run.err, "");
		assert_ptr_equal(strstr(run.out, "zklockfs " ZKLOCKFS_VERSION "\nfuse "), run.out);
	}
}

/* A command line of the options leads to the same options. */
static void the_same_again(void **state)
{
	static const char *const given[] = {
		"-o",
		"session_timeout=20500ms,tick_time=1s,drain=0s,on_lost=term,log_takes,audit,reuse,"
		"nokeeper,noprotect,metrics_locks=7,host=a\\,b,clients=kazoo,uid=5,umask=0,noatime,"
		"context=x\\,y",
		"zk1:2181,zk2/team/locks",
		"/usr",
		NULL,
	};
	struct options again;
	struct run run;
	char *bytes, *before, *after, **argv;
	size_t len;
	int status;

	(void)state;
	parse(&run, given);
	expect(run.ok, "%s", run.err);
	before = options_text(&run.options);
	assert_non_null(strstr(before, "session_timeout: 20500ms\n"));
	assert_non_null(strstr(before, "servers: zk1:2181,zk2\n"));
	assert_non_null(strstr(before, "context: context=x\\,y\n"));
	bytes = options_args(&run.options, &len);
	argv = args_split("zklockfs", bytes, len);
	assert_true(options_parse(args_count(argv), argv, "/usr", &again, &status));
	after = options_text(&again);
	assert_string_equal(after, before);
	assert_null(options_forbid(&run.options, &again));
	free(before);
	free(after);
	free(bytes);
	free(argv);
	options_free(&again);
	options_free(&run.options);
}

static void in_place(void **state)
{
	static const struct {
		const char *was, *wanted, *why; /* NULL: it may change */
	} rows[] = {
		{"on_lost=none", "on_lost=kill", NULL},
		{"log_takes,audit,reuse", "noreuse", NULL},
		{"session_timeout=15s", "session_timeout=20s", NULL},
		{"session_timeout=20s", "session_timeout=15s", NULL}, /* the engine says */
		{"rw", "tick_time=2s", NULL},
		{"tick_time=2s", "rw", NULL},
		{"tick_time=3s", "rw", "tick_time cannot change from 3s to -"},
		{"rw", "host=other", "host cannot change"},
		{"rw", "clients=kazoo", "clients cannot change from - to kazoo"},
		{"rw", "nokeeper", "keeper cannot change from yes to no"},
		{"rw", "ro", "ro cannot change"},
		{"rw", "noatime", "noatime cannot change"},
		{"rw", "context=x", "context cannot change"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct run was, wanted;
		const char *why;

		ACCEPT(&was, "-o", rows[i].was, "zk1", "/usr");
		ACCEPT(&wanted, "-o", rows[i].wanted, "zk2", "/usr");
		why = options_forbid(&was.options, &wanted.options);
		expect(rows[i].why ? why && strstr(why, rows[i].why) : !why, "%s to %s: %s",
		       rows[i].was, rows[i].wanted, why ? why : "allowed");
		options_free(&was.options);
		options_free(&wanted.options);
	}
}

static void differences(void **state)
{
	static const struct {
		const char *text, *differ, *stay;
	} rows[] = {
		{"on_lost: kill\nroot: /locks\nnews: 1\n", "on_lost kill, and not term", ""},
		{"on_lost: term\n", "", ""},
		{"session_timeout: 10s\n", "session_timeout 10s, and not 15s", ""},
		{"session_timeout: 15001ms\n", "session_timeout 15001ms, and not 15s",
	         "session_timeout"},
		{"session_timeout: 20s\nsession_timeout_in_force: 15000ms\n",
	         "session_timeout 20s, and not 15s", ""},
		{"session_timeout: 20s\nsession_timeout_in_force: 16000ms\n",
	         "session_timeout 20s, and not 15s", "session_timeout"},
		{"tick_time: 2s\n", "tick_time 2s, and not -", ""},
		{"tick_time: 3s\n", "tick_time 3s, and not -", "tick_time"},
		{"host: other\non_lost: none\n",
	         "on_lost none, and not term; host other, and not this", "host"},
		{"host: other\nro: yes\n", "host other, and not this; ro yes, and not no",
	         "host, ro"},
	};
	char room[256], stay[OPTIONS_STAY_MAX];
	struct run run;

	(void)state;
	ACCEPT(&run, "-o", "on_lost=term,host=this", "zk1", "/usr");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		assert_string_equal(
			options_differ(&run.options, rows[i].text, room, sizeof(room), stay),
			rows[i].differ);
		assert_string_equal(stay, rows[i].stay);
	}
	options_free(&run.options);
}

static void changes(void **state)
{
	char room[256], small[20];
	struct run was, now;

	(void)state;
	ACCEPT(&was, "-o", "on_lost=term,umask=077,host=this", "zk1", "/usr");
	ACCEPT(&now, "-o", "session_timeout=20s,tick_time=3s,umask=077,host=this", "zk1", "/usr");
	assert_string_equal(options_changes(&was.options, &now.options, room, sizeof(room)),
	                    "session_timeout 15s -> 20s, from the next session on; tick_time - -> "
	                    "3s; on_lost term -> none");
	assert_string_equal(options_changes(&was.options, &now.options, small, sizeof(small)),
	                    "session_timeout 15s");
	assert_string_equal(options_changes(&now.options, &now.options, room, sizeof(room)), "");
	options_free(&was.options);
	options_free(&now.options);
}

static void shorter_sessions(void **state)
{
	static const struct {
		const char *text, *has; /* NULL: it is not shorter */
	} rows[] = {
		{"session_timeout: 20s\nsession_timeout_in_force: 14000ms\n", "14000ms"},
		{"session_timeout_in_force: 15000ms\n", NULL},
		{"session_timeout_in_force: 0ms\n", NULL}, /* there is none */
		{"session_timeout: 1s\n", NULL},           /* of a program of before */
	};
	struct run run;
	char *has;

	(void)state;
	ACCEPT(&run, "zk1", "/usr");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		bool shorter = options_session_is_shorter(&run.options, rows[i].text, &has);

		assert_int_equal(shorter, rows[i].has != NULL);
		if (!shorter)
			continue;
		assert_string_equal(has, rows[i].has);
		free(has);
	}
	options_free(&run.options);
}

static void words_of_others(void **state)
{
	(void)state;
	assert_null(args_split("zklockfs", "", 0));
	assert_null(args_split("zklockfs", "no end", 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_again),
		cmocka_unit_test(in_place),
		cmocka_unit_test(differences),
		cmocka_unit_test(changes),
		cmocka_unit_test(shorter_sessions),
		cmocka_unit_test(words_of_others),
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_option),
		cmocka_unit_test(debug_stays_in_the_foreground),
		cmocka_unit_test(what_happens_on_loss),
		cmocka_unit_test(the_last_of_two_counts),
		cmocka_unit_test(options_of_userspace),
		cmocka_unit_test(servers_and_roots),
		cmocka_unit_test(fsname_cannot_bring_options),
		cmocka_unit_test(mount_points_are_absolute),
		cmocka_unit_test(bad_usage),
		cmocka_unit_test(bad_servers),
		cmocka_unit_test(sources_with_their_reason),
		cmocka_unit_test(bad_durations),
		cmocka_unit_test(bad_credentials),
		cmocka_unit_test(what_cannot_be_mounted),
		cmocka_unit_test(help_and_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
