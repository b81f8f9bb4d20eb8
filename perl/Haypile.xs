/* Cache::Haypile's calls of the C library, and the forms that keys and values have in a cache. */

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include <haypile.h>
#include <time.h>

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

/* The longest key that is put together on the stack. */
#define SHORT_KEY 512
/* The longest value for which a read makes room before it knows the length. */
#define LONGEST_GUESS 65536
/* The bytes that a value keeps at most beyond its own. */
#define MOST_WASTE 1024
/* The longest pause between two looks at what another process computes, in milliseconds. */
#define LONGEST_PAUSE_MS 50

/* Values are serialised, compressed or read by a callback: Perl does the rest of a call. */
#define IS_CODED 1
/* A value that is not there is asked for elsewhere. */
#define READS_THROUGH 2
/* Writes have callbacks. */
#define WRITES_THROUGH 4
/* A callback runs in which the cache may not be used. */
#define IS_LOCKED 8

/* An open cache. Several Perl objects have it: those of threads, and claims. */
typedef struct {
    haypile_cache *cache;
    UV users;
    UV flags;
    /* The TTL of entries that name none. */
    IV ttl_ms;
    /* The length of the last value that was read, and some bytes more. */
    STRLEN guess;
    /* Before each key. */
    char *prefix;
    STRLEN prefix_bytes;
} handle;

/* The right to compute a value, and the cache that it is of. */
typedef struct {
    handle *of;
    haypile_claim *claim;
} claim;

#ifdef USE_ITHREADS
static perl_mutex users_mutex;
#define LOCK_USERS MUTEX_LOCK(&users_mutex)
#define UNLOCK_USERS MUTEX_UNLOCK(&users_mutex)
#else
#define LOCK_USERS NOOP
#define UNLOCK_USERS NOOP
#endif

static void keep(handle *kept)
{
    LOCK_USERS;
    kept->users++;
    UNLOCK_USERS;
}

static void leave(handle *left)
{
    UV users;
    LOCK_USERS;
    users = --left->users;
    UNLOCK_USERS;
    if (users > 0)
        return;
    haypile_close(left->cache);
    free(left->prefix);
    free(left);
}

static int free_handle(pTHX_ SV *sv, MAGIC *magic)
{
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    if (magic->mg_ptr != NULL)
        leave((handle *)magic->mg_ptr);
    magic->mg_ptr = NULL;
    return 0;
}

static int free_claim(pTHX_ SV *sv, MAGIC *magic)
{
    claim *freed = (claim *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    if (freed != NULL) {
        haypile_release(freed->claim);
        leave(freed->of);
        free(freed);
    }
    magic->mg_ptr = NULL;
    return 0;
}

static int free_keys(pTHX_ SV *sv, MAGIC *magic)
{
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_CONTEXT;
    haypile_free_keys((haypile_keys *)magic->mg_ptr);
    magic->mg_ptr = NULL;
    return 0;
}

#ifdef USE_ITHREADS
/* A new thread shares the cache: the library is made for threads. */
static int share_handle(pTHX_ MAGIC *magic, CLONE_PARAMS *parameters)
{
    PERL_UNUSED_ARG(parameters);
    PERL_UNUSED_CONTEXT;
    if (magic->mg_ptr != NULL)
        keep((handle *)magic->mg_ptr);
    return 0;
}

/* Claims and iterations stay with their thread. */
static int forget(pTHX_ MAGIC *magic, CLONE_PARAMS *parameters)
{
    PERL_UNUSED_ARG(parameters);
    PERL_UNUSED_CONTEXT;
    magic->mg_ptr = NULL;
    return 0;
}

#define VTABLE(free, dup) {NULL, NULL, NULL, NULL, free, NULL, dup, NULL}
#else
#define VTABLE(free, dup) {NULL, NULL, NULL, NULL, free, NULL, NULL, NULL}
#endif

static MGVTBL handle_table = VTABLE(free_handle, share_handle);
static MGVTBL claim_table = VTABLE(free_claim, forget);
static MGVTBL keys_table = VTABLE(free_keys, forget);

static void *attached(pTHX_ SV *self, const MGVTBL *table)
{
    MAGIC *magic = SvROK(self) ? mg_findext(SvRV(self), PERL_MAGIC_ext, table) : NULL;
    return magic == NULL ? NULL : magic->mg_ptr;
}

static void attach(pTHX_ SV *self, MGVTBL *table, void *pointer)
{
    MAGIC *magic = sv_magicext(SvRV(self), NULL, PERL_MAGIC_ext, table, (char *)pointer, 0);
#ifdef USE_ITHREADS
    magic->mg_flags |= MGf_DUP;
#else
    PERL_UNUSED_VAR(magic);
#endif
}

/* Returns the open cache of an object. */
static handle *opened(pTHX_ SV *self)
{
    handle *found = (handle *)attached(aTHX_ self, &handle_table);
    if (found == NULL)
        croak("this cache is closed, or not a Cache::Haypile");
    return found;
}

/* The same, where no callback forbids it. */
static handle *unlocked(pTHX_ SV *self)
{
    handle *found = opened(aTHX_ self);
    if (found->flags & IS_LOCKED)
        croak("the cache is already locked by this process: a callback uses it; set allow_recursive");
    return found;
}

/* Throws the last error of the library, at the line of the program that called this module. */
static void throw_error(pTHX)
{
    dSP;
    SV *text = newSVpv(haypile_last_error(), 0);
    sv_utf8_decode(text);
    PUSHMARK(SP);
    mXPUSHs(text);
    PUTBACK;
    call_pv("Carp::croak", G_VOID | G_DISCARD);
    croak("%s", haypile_last_error());
}

/* Whether a write or a removal has happened; throws what is not the key's or the value's own fault. */
static bool happened(pTHX_ haypile_status status)
{
    switch (status) {
    case HAYPILE_OK:
        return TRUE;
    case HAYPILE_MISS:
    case HAYPILE_NOT_STORED:
    case HAYPILE_ERROR_KEY_TOO_LONG:
    case HAYPILE_ERROR_VALUE_TOO_LARGE:
    case HAYPILE_ERROR_FULL:
        return FALSE;
    default:
        throw_error(aTHX);
        return FALSE;
    }
}

/* The outcome of a write under a condition: 1 if it has happened, 0 if the condition did not hold, -1 if the cache does not
   take the entry. */
static IV outcome(pTHX_ haypile_status status)
{
    if (status == HAYPILE_MISS || status == HAYPILE_NOT_STORED)
        return 0;
    return happened(aTHX_ status) ? 1 : -1;
}

/* Returns memory that stays until the statement ends. */
static char *temporary(pTHX_ STRLEN bytes)
{
    return SvPVX(sv_2mortal(newSV(bytes)));
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
    SvGETMAGIC(value);
    if (!SvOK(value)) {
        *bytes = TAGGED_BYTES;
        return TAG "n";
    }
    if (SvROK(value) && !SvAMAGIC(value))
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

static SV *new_value(pTHX_ const void *bytes, STRLEN length)
{
    return untagged(aTHX_ newSVpvn((const char *)bytes, length));
}

/* Returns the value of a key as a new scalar; NULL if there is none. */
static SV *read_value(pTHX_ handle *of, SV *key)
{
    char room[SHORT_KEY];
    STRLEN key_bytes;
    const char *bytes = key_of(aTHX_ of, key, room, &key_bytes);
    size_t length;
    STRLEN size = of->guess;
    SV *value = newSV(size);
    haypile_status status;
    while ((status = haypile_get_into(of->cache, bytes, key_bytes, SvPVX(value), size, &length)) ==
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

/* Calls a method with the arguments of the XS function that calls it, and returns what it returns. */
#define GO_ON_IN_PERL(method)                                                                      \
    STMT_START {                                                                                   \
        I32 number;                                                                                \
        PUSHMARK(PL_stack_base + ax - 1);                                                          \
        PL_stack_sp = PL_stack_base + ax + items - 1;                                              \
        number = call_method(method, GIMME_V);                                                     \
        XSRETURN(number);                                                                          \
    }                                                                                              \
    STMT_END

/* Waits for as many milliseconds, or until a signal comes, and lets perl handle it. */
static void pause_for(pTHX_ IV ms)
{
    struct timespec time;
    time.tv_sec = (time_t)(ms / 1000);
    time.tv_nsec = (long)(ms % 1000) * 1000000L;
    nanosleep(&time, NULL);
    PERL_ASYNC_CHECK();
}

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile

PROTOTYPES: DISABLE

BOOT:
#ifdef USE_ITHREADS
    MUTEX_INIT(&users_mutex);
#endif

const char *
library_version()
  CODE:
    RETVAL = haypile_version();
  OUTPUT:
    RETVAL

void
_open(SV *self, const char *url, UV flags, IV ttl_ms, SV *prefix)
  PREINIT:
    haypile_cache *cache;
    handle *made;
    const char *bytes;
  CODE:
    if (!SvROK(self) || attached(aTHX_ self, &handle_table) != NULL)
        croak("this cache is open already");
    made = (handle *)calloc(1, sizeof *made);
    bytes = SvPVbyte(prefix, made->prefix_bytes);
    made->prefix = (char *)malloc(made->prefix_bytes + 1);
    Copy(bytes, made->prefix, made->prefix_bytes, char);
    if (haypile_open(url, &cache) != HAYPILE_OK) {
        free(made->prefix);
        free(made);
        throw_error(aTHX);
    }
    made->cache = cache;
    made->users = 1;
    made->flags = flags;
    made->ttl_ms = ttl_ms;
    made->guess = 256;
    attach(aTHX_ self, &handle_table, made);

void
_close(SV *self)
  PREINIT:
    MAGIC *magic;
  CODE:
    magic = SvROK(self) ? mg_findext(SvRV(self), PERL_MAGIC_ext, &handle_table) : NULL;
    if (magic != NULL)
        free_handle(aTHX_ SvRV(self), magic);

bool
is_open(SV *self)
  CODE:
    RETVAL = attached(aTHX_ self, &handle_table) != NULL;
  OUTPUT:
    RETVAL

void
_lock(SV *self, bool is_locked)
  PREINIT:
    handle *of;
  CODE:
    of = opened(aTHX_ self);
    of->flags = is_locked ? of->flags | IS_LOCKED : of->flags & ~(UV)IS_LOCKED;

void
get(SV *self, SV *key, ...)
  PREINIT:
    handle *of;
    SV *value;
  PPCODE:
    of = unlocked(aTHX_ self);
    if ((of->flags & IS_CODED) || items > 2)
        GO_ON_IN_PERL("_get");
    value = read_value(aTHX_ of, key);
    if (value == NULL && (of->flags & READS_THROUGH))
        GO_ON_IN_PERL("_read_through");
    if (value == NULL)
        XSRETURN_UNDEF;
    mPUSHs(value);

void
_read(SV *self, SV *key)
  PREINIT:
    SV *value;
  PPCODE:
    value = read_value(aTHX_ unlocked(aTHX_ self), key);
    if (value == NULL)
        XSRETURN_EMPTY;
    mPUSHs(value);

void
set(SV *self, SV *key, SV *value, ...)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes, *stored;
    STRLEN key_bytes, stored_bytes;
  PPCODE:
    of = unlocked(aTHX_ self);
    if ((of->flags & (IS_CODED | WRITES_THROUGH)) || items > 3)
        GO_ON_IN_PERL("_set");
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    stored = stored_of(aTHX_ value, &stored_bytes);
    if (happened(aTHX_ haypile_set(of->cache, bytes, key_bytes, stored, stored_bytes, of->ttl_ms)))
        XSRETURN_YES;
    XSRETURN_NO;

bool
_write(SV *self, SV *key, SV *value, IV ttl_ms, SV *lease = NULL)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes, *stored;
    STRLEN key_bytes, stored_bytes, lease_bytes;
    haypile_lease given;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    stored = stored_of(aTHX_ value, &stored_bytes);
    if (lease == NULL || !SvOK(lease)) {
        RETVAL = happened(aTHX_ haypile_set(of->cache, bytes, key_bytes, stored, stored_bytes, ttl_ms));
    } else {
        const char *text = SvPVbyte(lease, lease_bytes);
        if (lease_bytes != sizeof given.bytes)
            croak("this is not a lease: lease() returns one");
        Copy(text, given.bytes, sizeof given.bytes, char);
        RETVAL = happened(
            aTHX_ haypile_set_leased(of->cache, bytes, key_bytes, stored, stored_bytes, ttl_ms, &given));
    }
  OUTPUT:
    RETVAL

SV *
lease(SV *self, SV *key)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
    haypile_lease granted;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    if (haypile_get_lease(of->cache, bytes, key_bytes, &granted) != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpvn((char *)granted.bytes, sizeof granted.bytes);
  OUTPUT:
    RETVAL

IV
_add(SV *self, SV *key, SV *value, IV ttl_ms)
  ALIAS:
    _replace = 1
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes, *stored;
    STRLEN key_bytes, stored_bytes;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    stored = stored_of(aTHX_ value, &stored_bytes);
    RETVAL = outcome(
        aTHX_ ix == 0 ? haypile_add(of->cache, bytes, key_bytes, stored, stored_bytes, ttl_ms)
                      : haypile_replace(of->cache, bytes, key_bytes, stored, stored_bytes, ttl_ms));
  OUTPUT:
    RETVAL

void
_read_versioned(SV *self, SV *key)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
    haypile_pinned *pinned;
    const void *value;
    void *copy;
    size_t value_bytes;
    haypile_hit hit;
  PPCODE:
    /* The value, its version, and the milliseconds that it still has: -1 if it never expires. */
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    if (!happened(aTHX_ haypile_get_pinned(of->cache, bytes, key_bytes, &pinned, &value, &value_bytes)))
        XSRETURN_EMPTY;
    haypile_pinned_hit(pinned, &hit, sizeof hit);
    EXTEND(SP, 3);
    mPUSHs(new_value(aTHX_ value, value_bytes));
    haypile_unpin(pinned);
    if (!hit.has_version) {
        SP--;
        if (!happened(aTHX_ haypile_get_versioned(of->cache, bytes, key_bytes, &copy, &value_bytes,
                                                  &hit.version)))
            XSRETURN_EMPTY;
        mPUSHs(new_value(aTHX_ copy, value_bytes));
        haypile_free(copy);
    }
    mPUSHs(newSVpvn((char *)&hit.version, sizeof hit.version));
    mPUSHi(hit.expires_in_ms == HAYPILE_TTL_NEVER ? -1 : (IV)hit.expires_in_ms);

IV
_write_version(SV *self, SV *key, SV *value, IV ttl_ms, SV *version)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes, *stored, *text;
    STRLEN key_bytes, stored_bytes, version_bytes;
    uint64_t number;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    stored = stored_of(aTHX_ value, &stored_bytes);
    text = SvPVbyte(version, version_bytes);
    if (version_bytes != sizeof number)
        croak("this is not a version: gets() returns one");
    Copy(text, &number, 1, uint64_t);
    RETVAL = outcome(
        aTHX_ haypile_cas(of->cache, bytes, key_bytes, stored, stored_bytes, ttl_ms, number));
  OUTPUT:
    RETVAL

IV
_remove_version(SV *self, SV *key, SV *version)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes, *text;
    STRLEN key_bytes, version_bytes;
    uint64_t number;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    text = SvPVbyte(version, version_bytes);
    if (version_bytes != sizeof number)
        croak("this is not a version: gets() returns one");
    Copy(text, &number, 1, uint64_t);
    RETVAL = outcome(aTHX_ haypile_delete_version(of->cache, bytes, key_bytes, number));
  OUTPUT:
    RETVAL

bool
_exists(SV *self, SV *key)
  ALIAS:
    _remove = 1
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    RETVAL = happened(aTHX_ ix == 0 ? haypile_contains(of->cache, bytes, key_bytes)
                                    : haypile_delete(of->cache, bytes, key_bytes));
  OUTPUT:
    RETVAL

bool
_touch(SV *self, SV *key, IV ttl_ms)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    RETVAL = happened(aTHX_ haypile_touch(of->cache, bytes, key_bytes, ttl_ms));
  OUTPUT:
    RETVAL

SV *
_count(SV *self, SV *key, IV delta)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
    uint64_t number;
    haypile_status status;
  CODE:
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    status = delta < 0 ? haypile_decr(of->cache, bytes, key_bytes, (uint64_t)(-(delta + 1)) + 1, &number)
                       : haypile_incr(of->cache, bytes, key_bytes, (uint64_t)delta, &number);
    if (!happened(aTHX_ status))
        XSRETURN_UNDEF;
    RETVAL = newSVuv((UV)number);
  OUTPUT:
    RETVAL

void
_read_many(SV *self, AV *keys)
  PREINIT:
    handle *of;
    haypile_key *asked;
    haypile_values *values;
    SSize_t number, at;
    haypile_status status;
  PPCODE:
    of = unlocked(aTHX_ self);
    number = av_len(keys) + 1;
    if (number == 0)
        XSRETURN_EMPTY;
    asked = (haypile_key *)temporary(aTHX_ (STRLEN)number * sizeof *asked);
    for (at = 0; at < number; at++) {
        SV **key = av_fetch(keys, at, 0);
        char *room = of->prefix_bytes == 0 ? NULL : temporary(aTHX_ SHORT_KEY);
        STRLEN key_bytes;
        asked[at].key = key_of(aTHX_ of, key == NULL ? &PL_sv_undef : *key, room, &key_bytes);
        asked[at].key_bytes = key_bytes;
    }
    status = haypile_get_many(of->cache, asked, (size_t)number, &values);
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, number);
    for (at = 0; at < number; at++) {
        const void *value;
        size_t value_bytes;
        /* A key without a value is not undef, which is a value. */
        if (haypile_values_at(values, (size_t)at, &value, &value_bytes) == HAYPILE_OK)
            mPUSHs(newRV_noinc(new_value(aTHX_ value, value_bytes)));
        else
            PUSHs(&PL_sv_undef);
    }
    haypile_free_values(values);

void
_claim(SV *self, SV *key, IV ttl_ms, IV most_ms = IV_MAX)
  PREINIT:
    handle *of;
    char room[SHORT_KEY];
    const char *bytes;
    STRLEN key_bytes;
    claim *made;
    SV *object;
    void *value;
    size_t value_bytes;
    int64_t wait_ms;
    IV nap_ms = 1;
    haypile_status status;
  PPCODE:
    /* The value; or undef and a claim on it; or nothing if another caller has computed for `most_ms`. */
    of = unlocked(aTHX_ self);
    bytes = key_of(aTHX_ of, key, room, &key_bytes);
    /* A signal's handler can change the variable that has the key. */
    bytes = SvPVX(sv_2mortal(newSVpvn(bytes, key_bytes)));
    made = (claim *)calloc(1, sizeof *made);
    made->of = of;
    keep(of);
    /* Whatever ends this function, a signal's handler that dies among it, the claim ends with its scalar. */
    object = sv_2mortal(sv_bless(newRV_noinc(newSV(0)), gv_stashpvs("Cache::Haypile::Claim", GV_ADD)));
    attach(aTHX_ object, &claim_table, made);
    for (;;) {
        status = haypile_try_claim(of->cache, bytes, key_bytes, ttl_ms, &made->claim, &value, &value_bytes,
                                   &wait_ms);
        if (status != HAYPILE_PENDING)
            break;
        if (most_ms <= 0)
            XSRETURN_EMPTY;
        if (nap_ms > most_ms)
            nap_ms = most_ms;
        if (nap_ms > wait_ms)
            nap_ms = (IV)wait_ms;
        pause_for(aTHX_ nap_ms);
        most_ms -= nap_ms;
        if (nap_ms < LONGEST_PAUSE_MS)
            nap_ms = nap_ms * 2 < LONGEST_PAUSE_MS ? nap_ms * 2 : LONGEST_PAUSE_MS;
    }
    if (status == HAYPILE_OK) {
        mPUSHs(new_value(aTHX_ value, value_bytes));
        haypile_free(value);
        XSRETURN(1);
    }
    if (status != HAYPILE_MISS)
        throw_error(aTHX);
    EXTEND(SP, 2);
    PUSHs(&PL_sv_undef);
    PUSHs(object);

SV *
_keys(SV *self)
  PREINIT:
    haypile_keys *keys;
  CODE:
    if (haypile_list_keys(unlocked(aTHX_ self)->cache, &keys) != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = sv_bless(newRV_noinc(newSV(0)), gv_stashpvs("Cache::Haypile::Keys", GV_ADD));
    attach(aTHX_ RETVAL, &keys_table, keys);
  OUTPUT:
    RETVAL

SV *
_prefix(SV *self)
  PREINIT:
    handle *of;
  CODE:
    of = opened(aTHX_ self);
    RETVAL = newSVpvn(of->prefix, of->prefix_bytes);
  OUTPUT:
    RETVAL

void
_clear(SV *self)
  CODE:
    if (haypile_clear(unlocked(aTHX_ self)->cache) != HAYPILE_OK)
        throw_error(aTHX);

void
flush(SV *self, bool durable = FALSE)
  CODE:
    if (haypile_flush(unlocked(aTHX_ self)->cache, durable) != HAYPILE_OK)
        throw_error(aTHX);

void
_counts(SV *self)
  PREINIT:
    haypile_stats stats;
  PPCODE:
    if (haypile_get_stats(opened(aTHX_ self)->cache, &stats, sizeof stats) != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, 2);
    mPUSHu((UV)(stats.hits + stats.misses));
    mPUSHu((UV)stats.hits);

SV *
_text(SV *self, int which)
  PREINIT:
    haypile_cache *cache;
    char *text;
    haypile_status status;
  CODE:
    cache = opened(aTHX_ self)->cache;
    status = which == 0   ? haypile_url(cache, &text)
             : which == 1 ? haypile_warnings(cache, &text)
             : which == 2 ? haypile_writable_by_others(cache, &text)
                          : haypile_prometheus(cache, &text);
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpv(text, 0);
    haypile_free(text);
    sv_utf8_decode(RETVAL);
  OUTPUT:
    RETVAL

void
_limits(SV *self)
  PREINIT:
    haypile_limits limits;
  PPCODE:
    if (haypile_get_limits(opened(aTHX_ self)->cache, &limits, sizeof limits) != HAYPILE_OK)
        throw_error(aTHX);
    EXTEND(SP, 3);
    mPUSHu((UV)limits.max_key_bytes);
    mPUSHu((UV)limits.max_value_bytes);
    mPUSHu((UV)limits.capacity_bytes);

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile::Claim

void
complete(SV *self, SV *value)
  PREINIT:
    claim *held;
    haypile_claim *ended;
    const char *stored;
    STRLEN stored_bytes;
  CODE:
    held = (claim *)attached(aTHX_ self, &claim_table);
    if (held != NULL && held->claim != NULL) {
        stored = stored_of(aTHX_ value, &stored_bytes);
        ended = held->claim;
        held->claim = NULL;
        /* A child of a fork has no part in it: the value is its own. */
        haypile_complete(ended, stored, stored_bytes, NULL, 0);
    }

MODULE = Cache::Haypile    PACKAGE = Cache::Haypile::Keys

SV *
next(SV *self)
  PREINIT:
    haypile_keys *keys;
    const void *key;
    size_t key_bytes;
    haypile_status status;
  CODE:
    /* The bytes of a key. */
    keys = (haypile_keys *)attached(aTHX_ self, &keys_table);
    if (keys == NULL)
        croak("this iteration is of another thread");
    status = haypile_next_key(keys, &key, &key_bytes);
    if (status == HAYPILE_END)
        XSRETURN_UNDEF;
    if (status != HAYPILE_OK)
        throw_error(aTHX);
    RETVAL = newSVpvn((const char *)key, key_bytes);
  OUTPUT:
    RETVAL
