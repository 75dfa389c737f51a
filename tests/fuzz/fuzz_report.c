/*
 * What `weft report` is given: a result, temperatures, a drawing, or a prediction, by what the input begins with.
 * Whatever it is, it is refused with a reason, or becomes a whole report, which is compared with itself, and written in
 * all its forms. Of the page the data is JSON, and has no markup.
 */
#include <jansson.h>
#include <unistd.h>

#include "bench/report/contents.h"
#include "bench/report/gnuplot.h"
#include "bench/report/markdown.h"
#include "bench/report/page.h"
#include "fuzz.h"

static char folder[] = "/tmp/weft-fuzz-XXXXXX";
static bool made; /* the folder is there; its name may end in an X, too */

static void leave(void)
{
    static const char *const names[] = {"result.json", "again.json",    "temperatures.csv",
                                        "plan.svg",    "predicted.csv", "page.html"};
    char path[64];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static const char *write_file(const char *name, const void *data, size_t size, char *path, size_t room)
{
    snprintf(path, room, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

static bool begins(const uint8_t *data, size_t size, const char *text)
{
    return size >= strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

static void draw(const struct report_figures *figures, FILE *out)
{
    for (size_t i = 0; i < figures->count; i++) {
        const struct report_figure *figure = figures->list[i];
        if (figure->kind == REPORT_IMAGE)
            continue;
        report_gnuplot_data(out, figure);
        if (figure->kind != REPORT_TABLE)
            report_gnuplot_script(out, figure, "name");
    }
}

/* The data of the page is one JSON text without the letters that could end it. */
static void check_page(const char *path)
{
    static const char start[] = "<script type=\"application/json\" id=\"weft-data\">";
    size_t length = 0, room = 0;
    char *text = NULL;
    FILE *file = fopen(path, "re");

    FUZZ_CHECK(file && getdelim(&text, &room, '\0', file) > 0);
    fclose(file);
    char *data = strstr(text, start);
    FUZZ_CHECK(data);
    data += strlen(start);
    length = strcspn(data, "<>&");
    FUZZ_CHECK(strncmp(data + length, "</script>", 9) == 0);
    json_t *json = json_loadb(data, length, 0, NULL);
    FUZZ_CHECK(json_is_object(json));
    json_decref(json);
    free(text);
}

static void make(const char *const *paths, size_t count, const struct report_wish *wish, bool whole)
{
    struct report_contents contents = {0};
    struct wf_status status = {0};
    char page[64];
    int result = report_contents_read(&contents, paths, count, &status);

    if (result == 0)
        result = report_contents_make(&contents, wish, &status);
    FUZZ_CHECK(result == 0 || (result == status.code && status.text[0]));
    if (result == 0) {
        FILE *out = fopen("/dev/null", "we");
        FUZZ_CHECK(out);
        draw(&contents.figures, out);
        for (size_t i = 0; i < contents.chapter_count; i++)
            draw(&contents.chapters[i].figures, out);
        FUZZ_CHECK(report_markdown_put(&contents, out) == 0);
        fclose(out);
        snprintf(page, sizeof page, "%s/page.html", folder);
        FUZZ_CHECK(!whole || report_page_write(&contents, page, &status) == 0);
        if (whole)
            check_page(page);
    }
    report_contents_fini(&contents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char good[] =
        "{\"schema\":\"weft.result/1\",\"samples\":["
        "{\"backend\":\"weft\",\"mode\":\"isolated\",\"test\":\"bandwidth\",\"src\":\"node0:host0\","
        "\"dst\":\"node1:host0\",\"size_bytes\":1024,\"time_us\":{\"p50\":2},\"bw_gb_per_s\":0.5}]}";
    char first[64], second[64], beside[64];
    const char *paths[2] = {first, second};
    struct report_wish wish = {0};
    size_t count = 1;

    if (!made) {
        FUZZ_CHECK(mkdtemp(folder));
        made = true;
        atexit(leave);
    }
    if (begins(data, size, "timestamp_ns,")) {
        write_file("temperatures.csv", data, size, first, sizeof first);
    } else if (begins(data, size, "<")) {
        write_file("plan.svg", data, size, first, sizeof first);
    } else if (begins(data, size, "src,")) {
        write_file("result.json", good, sizeof good - 1, first, sizeof first);
        wish.predicted = write_file("predicted.csv", data, size, beside, sizeof beside);
    } else {
        write_file("result.json", data, size, first, sizeof first);
        write_file("again.json", good, sizeof good - 1, second, sizeof second);
        wish.baseline = first;
        count = size % 2 + 1; /* alone, and beside another */
    }
    make(paths, count, &wish, size / 2 % 8 == 0); /* a page has a megabyte of scripts */
    return 0;
}
