// SPDX-License-Identifier: GPL-2.0
/* One page that needs nothing else: no script, no style sheet, no picture from elsewhere. */
#include <string.h>
#include <time.h>

#include "ab.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\"\n"
	" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<title>mmopt ab</title>\n<style>\n"
	"body { font-family: sans-serif; margin: 2em auto; max-width: 64em; padding: 0 1em }\n"
	"table { border-collapse: collapse; margin: 1em 0 }\n"
	"th, td { padding: .3em .8em; border-bottom: 1px solid #ccc; text-align: right }\n"
	"th:first-child, td:first-child { text-align: left }\n"
	"svg { max-width: 100%; height: auto }\n"
	".bad { color: #b2182b }\n"
	"</style>\n</head>\n<body>\n<h1>mmopt ab</h1>\n";

static const char foot[] =
	"The verdict is Wilcoxon's signed-rank\n"
	"test over pairs of windows whose order was decided by a coin, corrected by Holm's\n"
	"method; the interval holds the ratios which that test does not reject. See\n"
	"mmopt(8).</p>\n</body>\n</html>\n";

static void text(FILE *f, const char *s)
{
	for (; *s; s++) {
		switch (*s) {
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '&':
			fputs("&amp;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		case '\'':
			fputs("&#39;", f);
			break;
		default:
			fputc(*s, f);
		}
	}
}

static void print_about(FILE *f, struct json_object *doc)
{
	struct json_object *metric, *load, *argv;
	time_t now = time(NULL);
	struct tm utc;
	char date[32];

	strftime(date, sizeof(date), "%F %T UTC", gmtime_r(&now, &utc));
	fprintf(f, "<p>mmopt " MMOPT_VERSION ", Linux ");
	text(f, host_release());
	fprintf(f, ", %s: %.3g s in windows of about %.3g s, seed %llu, %llu pairs.</p>\n", date,
		json_double(doc, "seconds"), json_double(doc, "window_s"), json_u64(doc, "seed"),
		json_u64(doc, "pairs"));
	if (!strcmp(json_str(doc, "mode"), "aa"))
		fprintf(f, "<p>A/A: the paths were off in both states.</p>\n");
	if (!json_flag(doc, "complete"))
		fprintf(f, "<p class=\"bad\">The run was cut short.</p>\n");
	if (json_object_object_get_ex(doc, "command", &load)) {
		argv = json_object_object_get(load, "argv");
		fprintf(f, "<p>Command: <code>");
		for (size_t i = 0; i < json_object_array_length(argv); i++) {
			text(f, i ? " " : "");
			text(f, json_object_get_string(json_object_array_get_idx(argv, i)));
		}
		fprintf(f, "</code></p>\n");
	}
	if (json_object_object_get_ex(doc, "metric", &metric)) {
		fprintf(f, "<p>Metric: <code>");
		text(f, json_str(metric, "command"));
		fprintf(f, "</code>, better: %s</p>\n", json_str(metric, "better"));
	}
}

static void state_cells(FILE *f, struct json_object *path, const char *state)
{
	struct json_object *obj = json_object_object_get(path, state);
	char mean[32], p50[32], p99[32];

	format_ns(mean, sizeof(mean), json_u64(obj, "mean_ns"));
	format_ns(p50, sizeof(p50), json_u64(obj, "p50_ns"));
	format_ns(p99, sizeof(p99), json_u64(obj, "p99_ns"));
	fprintf(f, "<td>%llu</td><td>%s</td><td>%s</td><td>%s</td>", json_u64(obj, "count"),
		mean, p50, p99);
}

static void verdict_cells(FILE *f, struct json_object *obj)
{
	if (json_object_object_get(obj, "ratio"))
		fprintf(f, "<td>%.3g</td><td>%.3g to %.3g (%.4g %%)</td>",
			json_double(obj, "ratio"), json_double(obj, "ratio_low"),
			json_double(obj, "ratio_high"), json_double(obj, "confidence_percent"));
	else
		fprintf(f, "<td>-</td><td>-</td>");
	fprintf(f, "<td>%llu</td><td><b>%s</b></td></tr>\n", json_u64(obj, "pairs"),
		json_str(obj, "verdict"));
}

static void median_cell(FILE *f, struct json_object *metric, const char *state)
{
	fprintf(f, "<td colspan=\"4\">median ");
	if (json_object_object_get(metric, state))
		fprintf(f, "%.6g</td>", json_double(metric, state));
	else
		fprintf(f, "-</td>");
}

static void print_table(FILE *f, struct json_object *doc)
{
	struct json_object *paths = json_object_object_get(doc, "paths"), *metric;
	size_t i, n = json_object_array_length(paths);

	fprintf(f, "<table>\n<tr><th>path</th>\n");
	fprintf(f, "<th>calls off</th><th>mean</th><th>p50</th><th>p99</th>\n");
	fprintf(f, "<th>calls on</th><th>mean</th><th>p50</th><th>p99</th><th>ratio</th>\n");
	fprintf(f, "<th>confidence interval</th><th>pairs</th><th>verdict</th></tr>\n");
	for (i = 0; i < n; i++) {
		struct json_object *path = json_object_array_get_idx(paths, i);

		fprintf(f, "<tr><td>%s</td>", json_str(path, "path"));
		state_cells(f, path, "off");
		state_cells(f, path, "on");
		verdict_cells(f, path);
		metric = json_object_object_get(path, "metric");
		if (!metric)
			continue;
		fprintf(f, "<tr><td>metric</td>");
		median_cell(f, metric, "off");
		median_cell(f, metric, "on");
		verdict_cells(f, metric);
	}
	fprintf(f, "</table>\n");
}

void ab_html(struct json_object *doc, const char *svg, FILE *out)
{
	const char *better = json_str(json_object_object_get(doc, "metric"), "better");
	const char *picture = svg ? strstr(svg, "<svg") : NULL;

	fputs(head, out);
	print_about(out, doc);
	print_table(out, doc);
	if (picture)
		fputs(picture, out);
	fprintf(out, "<p>A ratio above 1 is in favour of the path%s.\n",
		strcmp(better, "unknown") ? "" :
		"; of the metric it says that the path makes it higher");
	fputs(foot, out);
}
