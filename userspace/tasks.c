// SPDX-License-Identifier: GPL-2.0
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mmopt.h"

#define TASKS_NAMED	8

/* A task inside of the module has a function of it on its kernel stack. */
static bool is_inside(const char *pid, const char *tid)
{
	char *stack = file_slurp("/proc/%s/task/%s/stack", pid, tid);
	bool inside = stack && strstr(stack, "[" MODULE "]");

	free(stack);
	return inside;
}

static void threads_inside(struct json_object *tasks, const char *pid)
{
	struct dirent **threads;
	int i, n = dir_list(&threads, "/proc/%s/task", pid);

	for (i = 0; i < n; i++) {
		const char *tid = threads[i]->d_name;
		struct json_object *task;
		char comm[64];

		if (!is_inside(pid, tid))
			continue;
		file_line(comm, sizeof(comm), "/proc/%s/task/%s/comm", pid, tid);
		task = json_object_new_object();
		json_set_u64(task, "pid", strtoull(pid, NULL, 10));
		json_set_u64(task, "tid", strtoull(tid, NULL, 10));
		json_set(task, "comm", "%s", comm);
		json_object_array_add(tasks, task);
	}
	dir_free(threads, n);
}

/* Those that can be seen: a task that runs this very moment shows no stack. */
void tasks_inside(struct json_object *tasks)
{
	struct dirent **list;
	int i, n = dir_list(&list, "/proc");

	for (i = 0; i < n; i++)
		if (isdigit((unsigned char)list[i]->d_name[0]))
			threads_inside(tasks, list[i]->d_name);
	dir_free(list, n);
}

void tasks_name(char *buf, size_t size, struct json_object *tasks)
{
	size_t i, len = 0, n = json_object_array_length(tasks);

	snprintf(buf, size, "no task that is asleep");
	for (i = 0; i < n && i < TASKS_NAMED && len < size; i++) {
		struct json_object *task = json_object_array_get_idx(tasks, i);

		len += (size_t)snprintf(buf + len, size - len, "%s%s (%llu)", i ? ", " : "",
					json_str(task, "comm"), json_u64(task, "tid"));
	}
	if (n > TASKS_NAMED && len < size)
		snprintf(buf + len, size - len, " and %zu more", n - TASKS_NAMED);
}
