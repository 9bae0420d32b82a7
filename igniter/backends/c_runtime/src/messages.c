/* The errors that a library gives at run time: a text in a buffer on the stack, then an OrtStatus. */

#include "library.h"

enum { CAPACITY = 1024 };

/* Element types by ONNX's number, "of an unknown kind" where there is none. */
extern const char *const igniter_type_names[];
extern const uint64_t igniter_type_count;

/* Appends a C string, as much of it as fits. */
COLD void igniter_text(struct igniter_string *string, const char *text) {
  int64_t length = string->length;
  while (*text && length < string->capacity - 1)
    string->buffer[length++] = *text++;
  string->buffer[length] = 0;
  string->length = length;
}

/* Appends a decimal number; its digits are made from the last to the first. */
COLD void igniter_number(struct igniter_string *string, int64_t value) {
  char digits[24];
  int place = 23;
  uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  digits[place] = 0;
  do
    digits[--place] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (value < 0)
    digits[--place] = '-';
  igniter_text(string, digits + place);
}

/* Begins the text of an error: "Igniter op NAME: ". */
COLD
void igniter_begin(struct igniter_string *string, char *buffer, int64_t capacity, const struct igniter_desc *desc) {
  string->buffer = buffer;
  string->capacity = capacity;
  string->length = 0;
  igniter_text(string, "Igniter op ");
  igniter_text(string, desc->name);
  igniter_text(string, ": ");
}

COLD static void type(struct igniter_string *string, int64_t number) {
  igniter_text(string, igniter_type_names[(uint64_t)number < igniter_type_count ? number : 0]);
}

/* "input 3 ('x') " */
COLD
static void value(struct igniter_string *string, const char *what, int64_t index, const struct igniter_port *port) {
  igniter_text(string, what);
  igniter_number(string, index);
  igniter_text(string, " ('");
  igniter_text(string, port->name);
  igniter_text(string, "') ");
}

COLD static void requirement(struct igniter_string *string, const struct igniter_failure *failure) {
  const struct igniter_message *message = failure->message;
  for (int64_t k = 0; k < message->numbers; k++) {
    igniter_text(string, message->pieces[k]);
    igniter_number(string, failure->numbers[k]);
  }
  igniter_text(string, message->pieces[message->numbers]);
}

/* " = 5, expected " and the like, from text and numbers. */
COLD static void pair(struct igniter_string *string, const char *before, int64_t first, const char *between,
                 int64_t second) {
  igniter_text(string, before);
  igniter_number(string, first);
  igniter_text(string, between);
  igniter_number(string, second);
}

COLD static void shape(struct igniter_string *string, const struct igniter_port *port) {
  igniter_text(string, ": ");
  igniter_text(string, port->shape);
}

/* Appends the text of a failure; `about` is the port, or for a broken requirement the failure itself. */
static void describe(struct igniter_string *string, int32_t kind, const void *about, int64_t index, int64_t axis,
                     int64_t want, int64_t got) {
  const struct igniter_port *port = about;
  switch (kind) {
  case TOO_MANY_INPUTS:
    pair(string, "expected at most ", want, " inputs, got ", got);
    return;
  case TOO_MANY_OUTPUTS:
    pair(string, "expected at most ", want, " outputs, got ", got);
    return;
  case MISSING:
    value(string, "input ", index, port);
    igniter_text(string, "is missing");
    return;
  case MISSING_OUTPUT:
    value(string, "output ", index, port);
    igniter_text(string, "is left out of the node, but required");
    return;
  case WRONG_TYPE:
    value(string, "input ", index, port);
    igniter_text(string, "has element type ");
    type(string, got);
    igniter_text(string, ", expected ");
    type(string, want);
    return;
  case WRONG_RANK:
    value(string, "input ", index, port);
    pair(string, "has rank ", got, ", expected ", want);
    shape(string, port);
    return;
  case WRONG_DIM:
    value(string, "input ", index, port);
    pair(string, "has dim ", axis, " = ", got);
    igniter_text(string, ", expected ");
    igniter_number(string, want);
    shape(string, port);
    return;
  case WRONG_SYMBOL:
    value(string, "input ", index, port);
    pair(string, "has dim ", axis, " = ", got);
    igniter_text(string, ", expected ");
    igniter_text(string, port->dim_texts[axis]);
    igniter_text(string, " = ");
    igniter_number(string, want);
    shape(string, port);
    return;
  case UNSOLVABLE:
    value(string, "input ", index, port);
    pair(string, "has dim ", axis, " = ", got);
    igniter_text(string, ", which ");
    igniter_text(string, port->dim_texts[axis]);
    igniter_text(string, " cannot be");
    shape(string, port);
    return;
  case BAD_OUTPUT:
    value(string, "output ", index, port);
    igniter_text(string, "would have dim ");
    igniter_number(string, axis);
    igniter_text(string, " = ");
    igniter_text(string, port->dim_texts[axis]);
    igniter_text(string, " out of range (negative, over 63 bits, or undefined)");
    return;
  case BAD_SCRATCH:
    igniter_text(string, "the size of its scratch memory is out of range");
    return;
  case NO_MEMORY:
    igniter_text(string, "no memory for ");
    igniter_number(string, got);
    igniter_text(string, " bytes of scratch");
    return;
  case NOT_CONSTANT:
    value(string, "input ", index, port);
    igniter_text(string, "must be a constant of the model (an initializer that is no input of the graph): a kernel "
                         "transforms it when the session is created; compile with --tile-weights=file to store it "
                         "transformed");
    return;
  case NO_MEMORY_TO_MAKE:
    igniter_text(string, "no memory for ");
    igniter_number(string, got);
    igniter_text(string, " bytes of constants that it computes when the session is created; compile with "
                         "--tile-weights=file to map them from the model's folder");
    return;
  case BROKEN_REQUIREMENT:
    requirement(string, about);
    return;
  case NEGATIVE_VALUE:
    /* The output of a carrier's op has the message in place of a name. */
    igniter_text(string, port->name);
    pair(string, " (value ", index, " is ", got);
    igniter_text(string, ")");
    return;
  }
}

/* Returns the error of a failure. */
COLD OrtStatus *igniter_fail(const OrtApi *api, const struct igniter_desc *desc, int32_t kind, const void *about,
                        int64_t index, int64_t axis, int64_t want, int64_t got) {
  char buffer[CAPACITY];
  struct igniter_string string;
  igniter_begin(&string, buffer, CAPACITY, desc);
  describe(&string, kind, about, index, axis, want, got);
  return api->CreateStatus(kind == NO_MEMORY || kind == NO_MEMORY_TO_MAKE ? ORT_RUNTIME_EXCEPTION : ORT_INVALID_ARGUMENT, buffer);
}

/* The kernel's cell for an access out of bounds: null, or its text. Sanitized libraries only. */
COLD OrtStatus *igniter_outside(const OrtApi *api, const struct igniter_desc *desc, const char *outside) {
  char buffer[CAPACITY];
  struct igniter_string string;
  igniter_begin(&string, buffer, CAPACITY, desc);
  igniter_text(&string, outside);
  return api->CreateStatus(ORT_RUNTIME_EXCEPTION, buffer);
}
