// SPDX-License-Identifier: GPL-2.0
#include <linux/module.h>

#include "control.h"
#include "hook/hook.h"
#include "ksym.h"
#include "params.h"
#include "path.h"

/*
 * Why no path can work on this kernel, or NULL. A kernel where hooks do not
 * redirect has ftrace switched off, and nothing should be patched there.
 */
static const char *unfit(void)
{
	if (mmopt_ksym_init())
		return "no kallsyms_lookup_name: needs CONFIG_KPROBES and CONFIG_KALLSYMS_ALL";
	if (mmopt_inert())
		return "nommopt is on the kernel command line";
	if (mmopt_entry_selftest())
		return "a hook on mmopt's own function does not work: is kernel.ftrace_enabled 0?";
	return NULL;
}

static void recheck(struct work_struct *work)
{
	if (mmopt_path_recheck())
		schedule_delayed_work(to_delayed_work(work), HZ / 10);
}

static DECLARE_DELAYED_WORK(recheck_work, recheck);

/* A livepatch has been enabled by the time its module is live. */
static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == MODULE_STATE_LIVE && is_livepatch_module(data))
		schedule_delayed_work(&recheck_work, 0);
	return NOTIFY_OK;
}

static struct notifier_block module_nb = { .notifier_call = module_event };

static int __init mmopt_init(void)
{
	const char *why = unfit();
	struct mmopt_path *path;
	unsigned int i;
	int err;

	mmopt_for_each_path(path, i) {
		err = mmopt_path_init(path, why);
		if (err)
			goto err_paths;
	}
	err = register_module_notifier(&module_nb);
	if (err)
		goto err_paths;
	mmopt_control_init();
	mmopt_params_live();
	return 0;

err_paths:
	while (i--)
		mmopt_path_exit(mmopt_paths[i]);
	return err;
}

static void __exit mmopt_exit(void)
{
	unsigned int i;

	mmopt_params_exit();
	mmopt_control_exit();
	unregister_module_notifier(&module_nb);
	cancel_delayed_work_sync(&recheck_work);
	for (i = 0; mmopt_paths[i]; i++)
		mmopt_path_exit(mmopt_paths[i]);
}

module_init(mmopt_init);
module_exit(mmopt_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Faster memory-management paths for a running kernel");
MODULE_VERSION(MMOPT_VERSION);
