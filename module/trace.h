/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mmopt

#if !defined(MMOPT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MMOPT_TRACE_H

#include <linux/tracepoint.h>

#include "compat.h"

DECLARE_EVENT_CLASS(mmopt_said,
	TP_PROTO(const char *path, const char *what),
	TP_ARGS(path, what),
	TP_STRUCT__entry(
		__string(path, path)
		__string(what, what)
	),
	TP_fast_assign(
		mmopt_assign_str(path, path);
		mmopt_assign_str(what, what);
	),
	TP_printk("path=%s %s", __get_str(path), __get_str(what))
);

/* A path changed its state. */
DEFINE_EVENT(mmopt_said, mmopt_state,
	TP_PROTO(const char *path, const char *what), TP_ARGS(path, what));

/* Stock code does a call, or its rest; what: the reason. */
DEFINE_EVENT(mmopt_said, mmopt_fallback,
	TP_PROTO(const char *path, const char *what), TP_ARGS(path, what));

/* A path saw what should be impossible and leaves service. */
DEFINE_EVENT(mmopt_said, mmopt_trip,
	TP_PROTO(const char *path, const char *what), TP_ARGS(path, what));

#endif /* MMOPT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
