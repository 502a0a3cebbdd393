/* Sanitises plain HTML and extracts its text, in one pass. Optional: without a C compiler, html.py does the same.

   The grammar is that of `sanitised_if_plain` in html.py, which is the reference: whatever one of them accepts, the other
   accepts, too, and both return the same. tests/text/test_html.py compares them. What is not plain goes to the
   sanitiser.

   document: space (block space)*
   block:    <p> line </p>, likewise <h1> to <h6> | <ul> rows </ul>, likewise <ol> | <blockquote> paragraphs </blockquote>
             | <hr>
   line:     words, and between them <br>, <img>, links, and <strong>, <em>, <b>, <i>, <code> with words in them

   A character is read by `at`, which answers 0 behind the end: as 0 is allowed nowhere, no loop runs past it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

/* Everything is compiled three times, for characters of one, two and four bytes: that takes 40 % less time than asking
   for each character which it is. */
#define INLINE static inline __attribute__((always_inline))

static const char REL[] = " rel=\"noopener noreferrer nofollow\"";

enum { NO_GAP = 0, LINE = 1, PARAGRAPH = 2 };

/* A place where the sanitised HTML differs from the original. */
typedef struct {
    Py_ssize_t at;
    int removed; /* so many characters are left out there; 0: REL is put in */
} Edit;

typedef struct {
    const void *html;
    Py_ssize_t length, place;
    void *text; /* never longer than the HTML: what a tag adds is shorter than the tag */
    Py_ssize_t text_length;
    int gap;       /* what the tags since the last words put before the next ones: so many newlines */
    int in_line;   /* the line has words */
    int has_space; /* and a space behind them */
    Edit *edits;
    Py_ssize_t edit_count, edit_room;
    int out_of_memory;
} Pass;

INLINE Py_UCS4 at(const Pass *pass, int kind, Py_ssize_t place)
{
    return place < pass->length ? PyUnicode_READ(kind, pass->html, place) : 0;
}

INLINE Py_UCS4 here(const Pass *pass, int kind)
{
    return at(pass, kind, pass->place);
}

/* Steps over these ASCII characters, if they come next. */
INLINE int takes(Pass *pass, int kind, const char *expected)
{
    Py_ssize_t place = pass->place;
    for (; *expected; expected++, place++)
        if (at(pass, kind, place) != (Py_UCS4)*expected)
            return 0;
    pass->place = place;
    return 1;
}

/* ── the sanitised HTML ─────────────────────────────────────────────────────────────────────────────────────────── */

static int note_edit(Pass *pass, Py_ssize_t place, int removed)
{
    if (pass->edit_count == pass->edit_room) {
        Py_ssize_t room = pass->edit_room ? 2 * pass->edit_room : 16;
        Edit *edits = PyMem_Realloc(pass->edits, room * sizeof(Edit));
        if (!edits) {
            pass->out_of_memory = 1;
            return 0;
        }
        pass->edits = edits;
        pass->edit_room = room;
    }
    pass->edits[pass->edit_count++] = (Edit){place, removed};
    return 1;
}

/* ── its text ───────────────────────────────────────────────────────────────────────────────────────────────────── */

INLINE void write_character(Pass *pass, int kind, Py_UCS4 character)
{
    PyUnicode_WRITE(kind, pass->text, pass->text_length, character);
    pass->text_length++;
}

INLINE void add_to_text(Pass *pass, int kind, Py_UCS4 character)
{
    if (!pass->in_line) {
        if (pass->text_length)
            for (int newline = 0; newline < pass->gap; newline++)
                write_character(pass, kind, '\n');
        pass->in_line = 1;
        pass->gap = NO_GAP;
    } else if (pass->has_space) {
        write_character(pass, kind, ' ');
    }
    pass->has_space = 0;
    write_character(pass, kind, character);
}

INLINE void end_line(Pass *pass, int gap)
{
    if (gap > pass->gap)
        pass->gap = gap;
    pass->in_line = pass->has_space = 0;
}

/* ── the grammar ────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Whether a character is text: no control character, no lone surrogate, and no no-break space, which would come back as
   an entity. */
INLINE int is_text(Py_UCS4 character)
{
    if (character < 0x7f)
        return character >= ' ' || character == '\n' || character == '\t';
    return character > 0xa0 && (character < 0xd800 || character > 0xdfff);
}

INLINE int is_space(Py_UCS4 character)
{
    return character < 0x7f ? character == ' ' || character == '\n' || character == '\t' : Py_UNICODE_ISSPACE(character);
}

INLINE void pass_space(Pass *pass, int kind)
{
    for (;;) {
        Py_UCS4 character = here(pass, kind);
        if (character != ' ' && character != '\n' && character != '\t')
            return;
        pass->place++;
    }
}

/* Text with the entities that have only one spelling. Returns 0 at anything else that is no tag. */
INLINE int words(Pass *pass, int kind)
{
    for (;;) {
        Py_UCS4 character = here(pass, kind);
        if (character == '<')
            return 1;
        if (character == '&') {
            if (takes(pass, kind, "&amp;"))
                character = '&';
            else if (takes(pass, kind, "&lt;"))
                character = '<';
            else if (takes(pass, kind, "&gt;"))
                character = '>';
            else
                return 0;
            add_to_text(pass, kind, character);
            continue;
        }
        if (character == '>' || !is_text(character))
            return 0;
        if (is_space(character))
            pass->has_space = pass->in_line;
        else
            add_to_text(pass, kind, character);
        pass->place++;
    }
}

INLINE int is_digit(Py_UCS4 character)
{
    return character >= '0' && character <= '9';
}

INLINE int is_letter_or_digit(Py_UCS4 character)
{
    return (character >= 'a' && character <= 'z') || is_digit(character);
}

/* A number from 0 to 255 without leading zeros. */
INLINE int is_byte(const Pass *pass, int kind, Py_ssize_t begin, Py_ssize_t end)
{
    int value = 0;
    if (end - begin > 3 || (end - begin > 1 && at(pass, kind, begin) == '0'))
        return 0;
    for (Py_ssize_t place = begin; place < end; place++) {
        if (!is_digit(at(pass, kind, place)))
            return 0;
        value = 10 * value + (int)(at(pass, kind, place) - '0');
    }
    return value <= 255;
}

/* Only hosts about which no two programs disagree: names with a letter at the beginning of their last part, and four
   plain numbers. */
INLINE int host(Pass *pass, int kind)
{
    int parts = 0, bytes = 0;
    for (;;) {
        Py_ssize_t begin = pass->place, end = begin;
        while (is_letter_or_digit(at(pass, kind, end)) || at(pass, kind, end) == '-')
            end++;
        if (end == begin || at(pass, kind, begin) == '-' || at(pass, kind, end - 1) == '-' || takes(pass, kind, "xn--"))
            return 0;
        parts++;
        bytes += is_byte(pass, kind, begin, end);
        pass->place = end;
        if (here(pass, kind) != '.')
            return !is_digit(at(pass, kind, begin)) || (parts == 4 && bytes == 4);
        pass->place++;
    }
}

/* From 0 to 64999, with leading zeros up to four digits. */
INLINE int port(Pass *pass, int kind)
{
    Py_ssize_t begin = pass->place;
    while (is_digit(here(pass, kind)))
        pass->place++;
    Py_ssize_t digits = pass->place - begin;
    Py_UCS4 first = at(pass, kind, begin);
    if (digits == 5)
        return (first >= '1' && first <= '5') || (first == '6' && at(pass, kind, begin + 1) <= '4');
    return digits >= 1 && digits <= 4;
}

INLINE int is_of_path(Py_UCS4 character)
{
    if (is_letter_or_digit(character) || (character >= 'A' && character <= 'Z'))
        return 1;
    return character && character < 0x7f && strchr("/._~!$'()*+,;=:@%#?-", (int)character) != NULL;
}

/* An address up to its closing quote. */
INLINE int address(Pass *pass, int kind)
{
    if (!takes(pass, kind, "http"))
        return 0;
    takes(pass, kind, "s");
    if (!takes(pass, kind, "://") || !host(pass, kind))
        return 0;
    if (takes(pass, kind, ":") && !port(pass, kind))
        return 0;
    if (here(pass, kind) == '/')
        for (;;) {
            if (is_of_path(here(pass, kind)))
                pass->place++;
            else if (!takes(pass, kind, "&amp;"))
                break;
        }
    return takes(pass, kind, "\"");
}

/* The end of a tag that has no content. The sanitiser writes it without a slash. */
INLINE int empty_end(Pass *pass, int kind)
{
    Py_ssize_t begin = pass->place;
    takes(pass, kind, " ");
    if (!takes(pass, kind, "/"))
        pass->place = begin;
    int removed = (int)(pass->place - begin);
    if (removed && !note_edit(pass, begin, removed))
        return 0;
    return takes(pass, kind, ">");
}

INLINE int image(Pass *pass, int kind)
{
    if (!address(pass, kind))
        return 0;
    if (takes(pass, kind, " alt=\"")) {
        for (;; pass->place++) {
            Py_UCS4 character = here(pass, kind);
            if (character == '"')
                break;
            if (character == '<' || character == '>' || character == '&' || !is_text(character))
                return 0;
        }
        pass->place++;
    }
    return empty_end(pass, kind);
}

INLINE int marked(Pass *pass, int kind, const char *end)
{
    return words(pass, kind) && takes(pass, kind, end);
}

/* Words and what may stand between them, up to a tag of another sort. */
INLINE int line(Pass *pass, int kind)
{
    for (;;) {
        if (!words(pass, kind))
            return 0;
        int is_right;
        switch (at(pass, kind, pass->place + 1)) {
        case 'a':
            is_right = 0;
            if (takes(pass, kind, "<a href=\"") && address(pass, kind) && note_edit(pass, pass->place, 0))
                is_right = takes(pass, kind, ">") && marked(pass, kind, "</a>");
            break;
        case 'b':
            if (takes(pass, kind, "<br")) {
                is_right = empty_end(pass, kind);
                end_line(pass, LINE);
            } else {
                is_right = takes(pass, kind, "<b>") && marked(pass, kind, "</b>");
            }
            break;
        case 'c':
            is_right = takes(pass, kind, "<code>") && marked(pass, kind, "</code>");
            break;
        case 'e':
            is_right = takes(pass, kind, "<em>") && marked(pass, kind, "</em>");
            break;
        case 'i':
            if (takes(pass, kind, "<img src=\""))
                is_right = image(pass, kind);
            else
                is_right = takes(pass, kind, "<i>") && marked(pass, kind, "</i>");
            break;
        case 's':
            is_right = takes(pass, kind, "<strong>") && marked(pass, kind, "</strong>");
            break;
        default:
            return 1;
        }
        if (!is_right)
            return 0;
    }
}

INLINE int lined(Pass *pass, int kind, const char *end)
{
    end_line(pass, PARAGRAPH);
    if (!line(pass, kind) || !takes(pass, kind, end))
        return 0;
    end_line(pass, PARAGRAPH);
    return 1;
}

INLINE int rows(Pass *pass, int kind, const char *end)
{
    end_line(pass, PARAGRAPH);
    for (;;) {
        pass_space(pass, kind);
        if (takes(pass, kind, end))
            break;
        if (!takes(pass, kind, "<li>"))
            return 0;
        end_line(pass, LINE);
        if (!line(pass, kind) || !takes(pass, kind, "</li>"))
            return 0;
    }
    end_line(pass, PARAGRAPH);
    return 1;
}

INLINE int paragraphs(Pass *pass, int kind)
{
    end_line(pass, PARAGRAPH);
    for (;;) {
        pass_space(pass, kind);
        if (takes(pass, kind, "</blockquote>"))
            return 1;
        if (!takes(pass, kind, "<p>") || !lined(pass, kind, "</p>"))
            return 0;
    }
}

INLINE int block(Pass *pass, int kind)
{
    static const char *HEADING_ENDS[] = {"</h1>", "</h2>", "</h3>", "</h4>", "</h5>", "</h6>"};
    if (takes(pass, kind, "<p>"))
        return lined(pass, kind, "</p>");
    if (takes(pass, kind, "<ul>"))
        return rows(pass, kind, "</ul>");
    if (takes(pass, kind, "<ol>"))
        return rows(pass, kind, "</ol>");
    if (takes(pass, kind, "<blockquote>"))
        return paragraphs(pass, kind);
    if (takes(pass, kind, "<hr")) {
        end_line(pass, PARAGRAPH);
        return empty_end(pass, kind);
    }
    Py_UCS4 level = at(pass, kind, pass->place + 2);
    if (takes(pass, kind, "<h") && level >= '1' && level <= '6') {
        pass->place++;
        return takes(pass, kind, ">") && lined(pass, kind, HEADING_ENDS[level - '1']);
    }
    return 0;
}

INLINE int document(Pass *pass, int kind)
{
    for (;;) {
        pass_space(pass, kind);
        if (pass->place == pass->length)
            return 1;
        if (!block(pass, kind))
            return 0;
    }
}

/* ── the results ────────────────────────────────────────────────────────────────────────────────────────────────── */

/* Returns the HTML with its edits; all that they add and remove is ASCII. */
static PyObject *edited(PyObject *html, const Pass *pass)
{
    Py_ssize_t length = pass->length;
    const Py_ssize_t rel_length = (Py_ssize_t)strlen(REL);
    if (!pass->edit_count)
        return Py_NewRef(html);
    for (Py_ssize_t edit = 0; edit < pass->edit_count; edit++)
        length += pass->edits[edit].removed ? -pass->edits[edit].removed : rel_length;
    PyObject *clean = PyUnicode_New(length, PyUnicode_MAX_CHAR_VALUE(html));
    PyObject *rel = PyUnicode_FromString(REL);
    Py_ssize_t from = 0, to = 0;
    int is_right = clean && rel;
    for (Py_ssize_t edit = 0; is_right && edit < pass->edit_count; edit++) {
        Py_ssize_t size = pass->edits[edit].at - from;
        is_right = PyUnicode_CopyCharacters(clean, to, html, from, size) >= 0;
        from += size + pass->edits[edit].removed;
        to += size;
        if (is_right && !pass->edits[edit].removed) {
            is_right = PyUnicode_CopyCharacters(clean, to, rel, 0, rel_length) >= 0;
            to += rel_length;
        }
    }
    if (is_right)
        is_right = PyUnicode_CopyCharacters(clean, to, html, from, pass->length - from) >= 0;
    Py_XDECREF(rel);
    if (!is_right)
        Py_CLEAR(clean);
    return clean;
}

static PyObject *html_and_text(PyObject *module, PyObject *html)
{
    if (!PyUnicode_Check(html))
        return PyErr_Format(PyExc_TypeError, "expected str, not %.100s", Py_TYPE(html)->tp_name);
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(html) < 0)
        return NULL;
#endif
    const int kind = PyUnicode_KIND(html);
    Pass pass = {.html = PyUnicode_DATA(html), .length = PyUnicode_GET_LENGTH(html)};
    pass.text = PyMem_Malloc((size_t)(pass.length + 1) * (size_t)kind);
    if (!pass.text)
        return PyErr_NoMemory();
    int is_plain = kind == PyUnicode_1BYTE_KIND   ? document(&pass, PyUnicode_1BYTE_KIND)
                   : kind == PyUnicode_2BYTE_KIND ? document(&pass, PyUnicode_2BYTE_KIND)
                                                  : document(&pass, PyUnicode_4BYTE_KIND);
    PyObject *result = NULL;
    if (pass.out_of_memory) {
        PyErr_NoMemory();
    } else if (!is_plain) {
        result = Py_NewRef(Py_None);
    } else {
        PyObject *clean = edited(html, &pass);
        PyObject *text = clean ? PyUnicode_FromKindAndData(kind, pass.text, pass.text_length) : NULL;
        if (text)
            result = PyTuple_Pack(2, clean, text);
        Py_XDECREF(clean);
        Py_XDECREF(text);
    }
    PyMem_Free(pass.edits);
    PyMem_Free(pass.text);
    return result;
}

static PyMethodDef METHODS[] = {
    {"html_and_text", html_and_text, METH_O,
     "html_and_text(html)\n--\n\nReturns what the sanitiser makes of plain HTML, and its text; None if it is not plain."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_plain_html", .m_size = 0, .m_methods = METHODS,
};

PyMODINIT_FUNC PyInit__plain_html(void)
{
    return PyModuleDef_Init(&MODULE);
}
