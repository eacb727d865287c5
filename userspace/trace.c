// SPDX-License-Identifier: GPL-2.0
/*
 * The module's trace events, through an instance of tracefs of our own: whoever
 * else traces has other buffers, options and filters.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mmopt.h"

#define EVENTS		"events/" MODULE

static char instance[PATH_MAX / 2];

/* An instance begins with the options of whoever set those of the top. */
static const char *const options_wanted[][2] = {
	{ "bin", "0" }, { "hex", "0" }, { "raw", "0" }, { "context-info", "1" },
	{ "irq-info", "0" }, { "record-tgid", "0" }, { "latency-format", "0" }, { "block", "0" },
};

static int refused(int err, const char *what)
{
	bool no_right = err == EACCES || err == EPERM;
	bool locked = no_right && host_locked_down();
	int rc = fail(locked ? RC_LOCKDOWN : no_right ? RC_DENIED : RC_FAILED, err, "tracefs",
		      "%s", what);

	if (locked)
		fail_info("lockdown is %s and forbids tracing: 'mmopt stats' still counts",
			  host_lockdown());
	else if (no_right)
		fail_info("run mmopt as root");
	else
		fail_info("see the kernel log (dmesg) and 'ls %s'", instance);
	return rc;
}

/* One that was killed has left its instance behind. */
static void remove_leftovers(const char *tracefs)
{
	struct dirent **list;
	int n = dir_list(&list, "%s/instances", tracefs), pid, end;

	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;

		end = 0;
		if (sscanf(name, MODULE "-%d%n", &pid, &end) == 1 && !name[end] &&
		    !file_exists("/proc/%d", pid))
			dir_remove("%s/instances/%s", tracefs, name);
	}
	if (n >= 0)
		dir_free(list, n);
}

static int make_instance(void)
{
	char tracefs[PATH_MAX / 4];
	int ret, rc;

	ret = host_tracefs(tracefs, sizeof(tracefs));
	if (ret) {
		rc = fail(RC_FAILED, 0, "tracefs", "not mounted");
		if (file_exists("/sys/kernel/tracing"))
			fail_info("run 'mount -t tracefs none /sys/kernel/tracing' as root");
		else
			fail_info("this kernel has none (CONFIG_TRACING): see 'mmopt stats'");
		return rc;
	}
	remove_leftovers(tracefs);
	snprintf(instance, sizeof(instance), "%s/instances/" MODULE "-%d", tracefs, getpid());
	ret = dir_make("%s", instance);
	return ret ? refused(-ret, "cannot make an instance") : RC_OK;
}

static int set(const char *file, const char *text)
{
	return file_write(text, "%s/%s", instance, file);
}

/* Of these paths only, if any are named. */
static int set_filter(int argc, char **argv)
{
	char filter[1024] = "";
	size_t len = 0;

	for (int i = 0; i < argc && len < sizeof(filter); i++)
		len += (size_t)snprintf(filter + len, sizeof(filter) - len,
					"%spath == \"%s\"", i ? " || " : "", argv[i]);
	if (len >= sizeof(filter))
		return -E2BIG;
	return len ? set(EVENTS "/filter", filter) : 0;
}

static int start(int argc, char **argv)
{
	char option[64];
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(options_wanted); i++) {
		snprintf(option, sizeof(option), "options/%s", options_wanted[i][0]);
		set(option, options_wanted[i][1]);	/* not every kernel has each */
	}
	/* A clock that we can tell the time by; and to be woken by each event. */
	ret = set("trace_clock", "mono");
	if (!ret)
		ret = set("buffer_percent", "0");
	if (!ret)
		ret = set_filter(argc, argv);
	if (!ret)
		ret = set(EVENTS "/enable", "1");
	return ret ? refused(-ret, "cannot set the instance up") : RC_OK;
}

static void format_time(char *buf, size_t size, const char *form, __u64 us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	size_t len;

	/* for people theirs, for programs UTC */
	if (opts.json)
		gmtime_r(&seconds, &tm);
	else
		localtime_r(&seconds, &tm);
	len = strftime(buf, size, form, &tm);
	snprintf(buf + len, size - len, ".%06llu%s", us % 1000000, opts.json ? "Z" : "");
}

static __u64 now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (__u64)now.tv_sec * 1000000 + (__u64)now.tv_nsec / 1000;
}

/*
 * "%16s-%-7d [cpu] seconds.micros: mmopt_event: path=name what". The name of a task can
 * hold anything, but has its place.
 */
static bool parse_event(struct json_object *obj, const char *line)
{
	char event[32], path[64], when[64], what[256] = "";
	unsigned long long seconds, micros;
	unsigned int pid, cpu;
	int skip = (int)strspn(line, " ");

	if (strlen(line) < 18 || line[16] != '-' ||
	    sscanf(line + 17, "%u [%u] %llu.%6llu: "
		   MODULE "_%31[a-z_]: path=%63[a-z0-9_] %255[^\n]",
		   &pid, &cpu, &seconds, &micros, event, path, what) < 6)
		return false;
	format_time(when, sizeof(when), opts.json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S",
		    seconds * 1000000 + micros + now_us(CLOCK_REALTIME) - now_us(CLOCK_MONOTONIC));
	json_set(obj, "time", "%s", when);
	json_set(obj, "task", "%.*s", 16 - skip, line + skip);
	json_set_u64(obj, "pid", pid);
	json_set_u64(obj, "cpu", cpu);
	json_set(obj, "path", "%s", path);
	json_set(obj, "event", "%s", event);
	json_set(obj, "what", "%s", what);
	return true;
}

static int event(const char *line)
{
	struct json_object *obj = json_object_new_object();
	unsigned long long lost;
	unsigned int cpu;

	if (sscanf(line, "CPU:%u [LOST %llu EVENTS]", &cpu, &lost) == 2) {
		json_set_u64(obj, "cpu", cpu);
		json_set_u64(obj, "lost", lost);
	} else if (!parse_event(obj, line)) {
		json_set(obj, "text", "%s", line);
	}
	return out_now(obj, print_trace);
}

/* All that is there, in whole lines; what is left of one waits for its end. */
static int drain(int fd, bool *idle)
{
	static char text[16384];
	static size_t len;
	char *line, *end;
	int rc = RC_OK;
	ssize_t n;

	*idle = true;
	while (!rc && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
		*idle = false;
		len += (size_t)n;
		text[len] = '\0';
		for (line = text; !rc && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			rc = event(line);
		}
		len = strlen(line);
		memmove(text, line, len);
		if (len == sizeof(text) - 1)
			len = 0;
	}
	if (!rc && n < 0 && errno != EAGAIN && errno != EINTR)
		rc = refused(errno, "cannot read trace_pipe");
	return rc;
}

static int show(void)
{
	int fd = file_open("%s/trace_pipe", instance), rc = RC_OK;
	bool idle;

	if (fd < 0)
		return refused(-fd, "cannot open trace_pipe");
	progress("waiting for trace events, ^C ends");
	while (!rc && wait_for(now_ms() + 500, fd, &rc)) {
		rc = drain(fd, &idle);
		if (!rc && idle && control_gone())
			rc = control_lost();
	}
	close(fd);
	return rc;
}

int cmd_trace(struct json_object *doc, int argc, char **argv)
{
	struct path_list list;
	int ret, rc;

	(void)doc;
	rc = paths_named(&list, argc, argv);
	paths_free(&list);
	if (rc)
		return rc;
	catch_signals();
	signal(SIGPIPE, SIG_IGN);
	rc = make_instance();
	if (rc)
		return rc;
	rc = start(argc, argv);
	if (!rc)
		rc = show();
	ret = dir_remove("%s", instance);
	if (ret)
		out_warn(instance, "cannot be removed: %s", strerror(-ret));
	return rc;
}

void print_trace(struct json_object *event)
{
	const char *path = json_str(event, "path"), *what = json_str(event, "what");
	const char *text = json_str(event, "text"), *meaning = "";
	char task[64], key[300];

	if (json_object_object_get_ex(event, "lost", NULL)) {
		printf("%llu events were lost on CPU %llu\n", json_u64(event, "lost"),
		       json_u64(event, "cpu"));
		return;
	}
	if (*text) {
		printf("%s\n", text);
		return;
	}
	if (!strcmp(json_str(event, "event"), "fallback")) {
		snprintf(key, sizeof(key), MMOPT_PREFIX_FALLBACK "%s", what);
		meaning = stats_meaning(path, key);
	}
	snprintf(task, sizeof(task), "%s-%llu", json_str(event, "task"), json_u64(event, "pid"));
	printf("%s  %-20s  %s %s: %s%s%s\n", json_str(event, "time"), task, path,
	       json_str(event, "event"), what, *meaning ? ", " : "", meaning);
}
