// SPDX-License-Identifier: GPL-2.0
/*
 * The files below /sys/kernel/debug/mmopt, see <mmopt/abi.h>. State and numbers
 * are in files of their own, without a write bit: under lockdown a debugfs file
 * that has one cannot even be read.
 */
#include <linux/debugfs.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "control.h"
#include "hook/hook.h"
#include "ksym.h"
#include "params.h"
#include "path.h"

static struct dentry *root;

static int version_show(struct seq_file *m, void *unused)
{
	seq_puts(m, MMOPT_VERSION "\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(version);

static int status_show(struct seq_file *m, void *unused)
{
	char state[MMOPT_REASON_LEN + 32];
	struct mmopt_path *path;
	unsigned int i;
	size_t word;

	mmopt_for_each_path(path, i) {
		mmopt_path_describe(path, state, sizeof(state));
		word = strcspn(state, ":");
		seq_printf(m, "%s %.*s%s%s\n", path->name, (int)word, state,
			   MMOPT_KERNEL_TESTED ? "" : " untested", state + word);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(status);

static int state_show(struct seq_file *m, void *unused)
{
	char state[MMOPT_REASON_LEN + 32];

	mmopt_path_describe(m->private, state, sizeof(state));
	seq_printf(m, "%s\n", state);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static int stats_show(struct seq_file *m, void *unused)
{
	struct mmopt_path *path = m->private;

	mmopt_stats_show(&path->stats, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int explain_show(struct seq_file *m, void *unused)
{
	const struct mmopt_path *path = m->private;
	const struct mmopt_tunable *tunable;
	const char *const *name;

	seq_printf(m, MMOPT_KEY_VERSION ": %d\n", MMOPT_EXPLAIN_VERSION);
	if (READ_ONCE(path->state) == MMOPT_STATE_unavailable)
		seq_puts(m, MMOPT_KEY_MECHANISM " none\n");
	else if (path->sites)
		mmopt_callsites_explain(path->sites, m);
	else if (path->entry)
		mmopt_entry_explain(path->entry, m);
	for (name = path->bypassed; name && *name; name++)
		if (mmopt_ksym(*name))
			seq_printf(m, MMOPT_KEY_BYPASSES " %s\n", *name);
	for (tunable = path->tunables; tunable && tunable->name; tunable++)
		seq_printf(m, MMOPT_KEY_TUNABLE " %s %lu %lu %lu\n", tunable->name,
			   READ_ONCE(*tunable->value), tunable->min, tunable->max);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(explain);

/*
 * Switches: 0 1 n y off on, and nothing else, not even what only begins like
 * one of them.
 */
static int parse_switch(const char __user *user, size_t len, bool *on)
{
	static const char *const word[] = { "0", "1", "n", "y", "off", "on" };
	char buf[8];
	int i;

	if (!len || len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, user, len))
		return -EFAULT;
	if (memchr(buf, '\0', len))
		return -EINVAL;
	buf[len] = '\0';
	if (buf[len - 1] == '\n')
		buf[len - 1] = '\0';
	i = match_string(word, ARRAY_SIZE(word), buf);
	if (i < 0)
		return -EINVAL;
	*on = i & 1;
	return 0;
}

static ssize_t show_switch(char __user *user, size_t len, loff_t *pos, bool on)
{
	return simple_read_from_buffer(user, len, pos, on ? "1\n" : "0\n", 2);
}

static ssize_t enabled_read(struct file *file, char __user *user, size_t len,
			    loff_t *pos)
{
	struct mmopt_path *path = file->private_data;

	return show_switch(user, len, pos, READ_ONCE(path->enabled));
}

static ssize_t enabled_write(struct file *file, const char __user *user,
			     size_t len, loff_t *pos)
{
	bool on;
	int err;

	err = parse_switch(user, len, &on);
	if (!err)
		err = mmopt_path_enable(file->private_data, on);
	return err ?: len;
}

static const struct file_operations enabled_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = enabled_read,
	.write = enabled_write,
};

static ssize_t observe_read(struct file *file, char __user *user, size_t len,
			    loff_t *pos)
{
	struct mmopt_path *path = file->private_data;

	return show_switch(user, len, pos, READ_ONCE(path->observe));
}

static ssize_t observe_write(struct file *file, const char __user *user,
			     size_t len, loff_t *pos)
{
	bool on;
	int err;

	err = parse_switch(user, len, &on);
	if (!err)
		err = mmopt_path_observe(file->private_data, on);
	return err ?: len;
}

static const struct file_operations observe_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = observe_read,
	.write = observe_write,
};

static ssize_t reset_write(struct file *file, const char __user *user,
			   size_t len, loff_t *pos)
{
	struct mmopt_path *path = file->private_data;
	bool on;
	int err;

	err = parse_switch(user, len, &on);
	if (!err && !on)
		err = -EINVAL;
	if (!err)
		mmopt_stats_reset(&path->stats);
	return err ?: len;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

static ssize_t tunable_read(struct file *file, char __user *user, size_t len,
			    loff_t *pos)
{
	const struct mmopt_tunable *tunable = file->private_data;
	char buf[24];
	int n = scnprintf(buf, sizeof(buf), "%lu\n", READ_ONCE(*tunable->value));

	return simple_read_from_buffer(user, len, pos, buf, n);
}

static ssize_t tunable_write(struct file *file, const char __user *user,
			     size_t len, loff_t *pos)
{
	const struct mmopt_tunable *tunable = file->private_data;
	unsigned long value;
	int err;

	/* which looks at the first 66 bytes and no further */
	err = len < 32 ? kstrtoul_from_user(user, len, 10, &value) : -EINVAL;
	if (err)
		return err == -EFAULT ? err : -EINVAL;
	if (value < tunable->min || value > tunable->max)
		return -EINVAL;
	WRITE_ONCE(*tunable->value, value);
	return len;
}

static const struct file_operations tunable_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = tunable_read,
	.write = tunable_write,
};

/**
 * mmopt_control_init() - make the files
 *
 * Without debugfs there are none, and the module parameter is the switch.
 */
void mmopt_control_init(void)
{
	const struct mmopt_tunable *tunable;
	struct mmopt_path *path;
	struct dentry *dir;
	unsigned int i;

	root = debugfs_create_dir(MMOPT_DIR, NULL);
	debugfs_create_file(MMOPT_FILE_VERSION, 0444, root, NULL, &version_fops);
	debugfs_create_file(MMOPT_FILE_STATUS, 0444, root, NULL, &status_fops);
	mmopt_for_each_path(path, i) {
		dir = debugfs_create_dir(path->name, root);
		debugfs_create_file(MMOPT_FILE_ENABLED, 0644, dir, path, &enabled_fops);
		debugfs_create_file(MMOPT_FILE_OBSERVE, 0644, dir, path, &observe_fops);
		debugfs_create_file(MMOPT_FILE_STATE, 0444, dir, path, &state_fops);
		debugfs_create_file(MMOPT_FILE_STATS, 0444, dir, path, &stats_fops);
		debugfs_create_file(MMOPT_FILE_RESET, 0200, dir, path, &reset_fops);
		debugfs_create_file(MMOPT_FILE_EXPLAIN, 0444, dir, path, &explain_fops);
		for (tunable = path->tunables; tunable && tunable->name; tunable++)
			debugfs_create_file(tunable->name, 0644, dir,
					    (void *)tunable, &tunable_fops);
	}
}

/**
 * mmopt_control_exit() - remove the files; waits for those who use one
 */
void mmopt_control_exit(void)
{
	debugfs_remove(root);
}
