// SPDX-License-Identifier: GPL-2.0
/* Makes ftrace shut itself down, as the kernel does when it meets a bug there. */
#include <linux/kprobes.h>
#include <linux/module.h>

static int __init mmopt_test_kill_init(void)
{
	struct kprobe kp = {
		.symbol_name = "ftrace_kill",
		.flags = KPROBE_FLAG_DISABLED,
	};
	void (*kill)(void);
	int err = register_kprobe(&kp);

	if (err)
		return err;
	kill = (void *)kp.addr;
	unregister_kprobe(&kp);
	kill();
	return 0;
}

static void __exit mmopt_test_kill_exit(void)
{
}

module_init(mmopt_test_kill_init);
module_exit(mmopt_test_kill_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("The end of ftrace, for the tests of mmopt");
