/* The forms that keys and values have in a cache. Included once, by Haypile.xs, after objects.h. */

/* A value that is not a plain string of bytes begins with this, which no UTF-8 contains, and a letter. */
#define TAG "\xF8Pl"
#define TAG_LENGTH 3
/* Characters, as UTF-8. */
#define TAG_TEXT 'u'
/* undef. */
#define TAG_UNDEF 'n'
/* Bytes that begin with a tag themselves. */
#define TAG_BYTES 'b'
#define TAGGED_BYTES (TAG_LENGTH + 1)

/* The longest key of the library. */
#define LONGEST_KEY 65535
/* The longest key that is put together on the stack. */
#define SHORT_KEY 512
/* The longest value for which a read makes room before it knows the length. */
#define LONGEST_GUESS 65536
/* The bytes that a value keeps at most beyond its own. */
#define MOST_WASTE 1024

#define NO_VERSION "this is not a version: gets() returns one"

/* Copies the bytes of a scalar, which has as many as that. */
static void copy_exactly(pTHX_ SV *from, void *to, STRLEN expected, const char *otherwise)
{
    STRLEN bytes;
    const char *text = SvPVbyte(from, bytes);
    if (bytes != expected)
        croak("%s", otherwise);
    memcpy(to, text, expected);
}

/* Returns memory that stays until the statement ends. */
static char *temporary(pTHX_ STRLEN bytes)
{
    return SvPVX(sv_2mortal(newSV(bytes + 1)));
}

/* Whether reading a scalar runs code of the program, which may change others. */
static bool is_special(SV *scalar)
{
    return SvROK(scalar) || SvGMAGICAL(scalar);
}

/* Returns a scalar whose bytes no code of the program changes before the statement ends. */
static SV *settled(pTHX_ SV *scalar)
{
    SV *copy;
    if (!is_special(scalar))
        return scalar;
    SvGETMAGIC(scalar);
    if (!SvOK(scalar))
        return &PL_sv_undef;
    if (SvROK(scalar) && !SvAMAGIC(scalar) && !SvRX(scalar))
        return scalar;
    copy = sv_2mortal(newSVpvn("", 0));
    sv_copypv_nomg(copy, scalar);
    return copy;
}

/* Returns the text of a key, also of a reference, which code of the program no longer changes. */
static SV *settled_key(pTHX_ SV *key)
{
    if (SvROK(key) && !SvAMAGIC(key))
        return sv_2mortal(newSVpvf("%" SVf, SVfARG(key)));
    return settled(aTHX_ key);
}

/* Returns the bytes of a key: those of its characters if none is above 255, and otherwise their UTF-8. So one text is one
   key, whatever perl's form of it is. They stay until the statement ends. */
static const char *key_of(pTHX_ const handle *of, SV *key, char *room, STRLEN *bytes)
{
    STRLEN own_bytes;
    char *own = SvPV(key, own_bytes);
    if (SvUTF8(key)) {
        bool is_utf8 = TRUE;
        char *narrow = (char *)bytes_from_utf8((U8 *)own, &own_bytes, &is_utf8);
        if (narrow != own) {
            own = temporary(aTHX_ own_bytes);
            Copy(narrow, own, own_bytes, char);
            Safefree(narrow);
        }
    }
    *bytes = of->prefix_bytes + own_bytes;
    if (of->prefix_bytes == 0)
        return own;
    if (*bytes > SHORT_KEY)
        room = temporary(aTHX_ *bytes);
    Copy(of->prefix, room, of->prefix_bytes, char);
    Copy(own, room + of->prefix_bytes, own_bytes, char);
    return room;
}

/* Returns what a cache keeps for a scalar. It stays until the statement ends, or the scalar changes. */
static const char *stored_of(pTHX_ SV *value, STRLEN *bytes)
{
    char *plain, *tagged, letter;
    STRLEN at;
    if (!SvOK(value)) {
        *bytes = TAGGED_BYTES;
        return TAG "n";
    }
    if (SvROK(value) && !SvAMAGIC(value) && !SvRX(value))
        croak("a reference cannot be stored without a serializer");
    plain = SvPV_nomg(value, *bytes);
    if (SvUTF8(value)) {
        for (at = 0; at < *bytes && !(plain[at] & 0x80); at++)
            ;
        if (at == *bytes)
            return plain;
        letter = TAG_TEXT;
    } else if (*bytes >= TAG_LENGTH && memEQ(plain, TAG, TAG_LENGTH)) {
        letter = TAG_BYTES;
    } else {
        return plain;
    }
    tagged = temporary(aTHX_ *bytes + TAGGED_BYTES);
    Copy(TAG, tagged, TAG_LENGTH, char);
    tagged[TAG_LENGTH] = letter;
    Copy(plain, tagged + TAGGED_BYTES, *bytes, char);
    *bytes += TAGGED_BYTES;
    return tagged;
}

/* Makes of the bytes in a scalar what was stored. */
static SV *untagged(pTHX_ SV *value)
{
    char *bytes = SvPVX(value);
    STRLEN length = SvCUR(value);
    char letter;
    if (length < TAGGED_BYTES || memNE(bytes, TAG, TAG_LENGTH))
        return value;
    letter = bytes[TAG_LENGTH];
    if (letter == TAG_UNDEF) {
        SvREFCNT_dec(value);
        return newSV(0);
    }
    if (letter != TAG_TEXT && letter != TAG_BYTES)
        return value;
    Move(bytes + TAGGED_BYTES, bytes, length - TAGGED_BYTES, char);
    SvCUR_set(value, length - TAGGED_BYTES);
    *SvEND(value) = '\0';
    /* Others can have written it, and perl trusts its own UTF-8. */
    if (letter == TAG_TEXT && is_utf8_string((U8 *)bytes, length - TAGGED_BYTES))
        SvUTF8_on(value);
    return value;
}

/* A call that is about one key: its arguments, as the library takes them. */
typedef struct {
    handle *of;
    haypile_cache *cache;
    const char *key;
    STRLEN key_bytes;
    const char *value;
    STRLEN value_bytes;
    char room[SHORT_KEY];
} request;

/* Begins a call. Reading an argument may run code of the program, which may close the cache: so that is looked up last. */
static void begin(pTHX_ request *made, SV *self, SV *key)
{
    key = settled_key(aTHX_ key);
    made->of = unlocked(aTHX_ self);
    made->cache = made->of->of->cache;
    made->key = key_of(aTHX_ made->of, key, made->room, &made->key_bytes);
}

/* Begins a call that writes. Reading one argument must not change the other. */
static void begin_write(pTHX_ request *made, SV *self, SV *key, SV *value)
{
    if (is_special(value) && !is_special(key))
        key = sv_mortalcopy(key);
    key = settled_key(aTHX_ key);
    value = settled(aTHX_ value);
    begin(aTHX_ made, self, key);
    made->value = stored_of(aTHX_ value, &made->value_bytes);
}

static SV *new_value(pTHX_ const void *bytes, STRLEN length)
{
    return untagged(aTHX_ newSVpvn((const char *)bytes, length));
}

/* Returns the value of a key as a new scalar; NULL if there is none. */
static SV *read_value(pTHX_ const request *asked)
{
    handle *of = asked->of;
    size_t length;
    STRLEN size = of->guess;
    SV *value = newSV(size);
    haypile_status status;
    while ((status = haypile_get_into(asked->cache, asked->key, asked->key_bytes, SvPVX(value), size, &length)) ==
           HAYPILE_TOO_SMALL) {
        size = length;
        SvGROW(value, size + 1);
    }
    if (status != HAYPILE_OK) {
        SvREFCNT_dec(value);
        (void)happened(aTHX_ status);
        return NULL;
    }
    of->guess = length + 32 < LONGEST_GUESS ? length + 32 : LONGEST_GUESS;
    SvPOK_only(value);
    SvCUR_set(value, length);
    *SvEND(value) = '\0';
    if (SvLEN(value) > length + MOST_WASTE)
        SvPV_renew(value, length + 1);
    return untagged(aTHX_ value);
}
