package Cache::Haypile;

# The documentation is in Cache/Haypile.pod.

use 5.030;
use strict;
use warnings;
# Callbacks may ask for further keys.
no warnings 'recursion';

our $VERSION = '0.001000';

use Carp ();
use Scalar::Util ();
use Time::HiRes  ();
use XSLoader;

use Cache::Haypile::Place;
use Cache::Haypile::Times qw(ttl_after ttl_until expires_on NOW NEVER OF_CACHE);
use Cache::Haypile::Values;

XSLoader::load('Cache::Haypile', $VERSION);

# Bits of an open cache; objects.h has them too.
use constant { IS_CODED => 1, READS_THROUGH => 2, WRITES_THROUGH => 4 };

# Changes that wait for `write_cb` in one process, at most.
use constant WRITE_BACK_LIMIT => 1000;

# Caches that have something to do at the end of the program.
our %LiveCaches;

my %OPTIONS = map { $_ => 1 } qw(
    url share_file init_file permissions cache_size page_size num_pages unlink_on_exit empty_on_exit expire_time
    serializer raw_values compressor compress context read_cb write_cb delete_cb cache_not_found
    write_action allow_recursive trusts_others key_prefix
);
# Options of Cache::FastMmap that have nothing to do here: reads are counted, every file is tested, and there are no slots and no locks.
my %NEEDLESS = map { $_ => 1 } qw(enable_stats test_file start_slots catch_deadlocks);
my %REFUSED  = (
    tombstone_expire_time => 'a removal needs no tombstone here: take a lease() before you compute, and set with it',
);

sub new {
    my $class = shift;
    $class = ref $class || $class;
    my %options = @_ == 1 ? (ref $_[0] eq 'HASH' ? %{ $_[0] } : (url => $_[0])) : @_;
    for my $option (sort keys %options) {
        next if $OPTIONS{$option} || $NEEDLESS{$option};
        Carp::croak("Cache::Haypile has no `$option`: $REFUSED{$option}") if $REFUSED{$option};
        Carp::croak("Cache::Haypile has no option `$option`; it has " . join ', ', sort keys %OPTIONS);
    }
    my $action = $options{write_action} || 'write_through';
    Carp::croak("`write_action` is 'write_through' or 'write_back', and not '$action'")
        if $action !~ /^write_(?:through|back)$/;
    for my $callback (qw(read_cb write_cb delete_cb)) {
        Carp::croak("`$callback` is a sub") if defined $options{$callback} && ref $options{$callback} ne 'CODE';
    }

    my $place = Cache::Haypile::Place::of_options(\%options);
    my $codec = Cache::Haypile::Values::of_options(\%options);
    my $self  = bless { %$place, %$codec, serializer => $options{serializer} // 'storable', _of_new_object() }, $class;
    @$self{qw(context read_cb write_cb delete_cb cache_not_found allow_recursive)}
        = @options{qw(context read_cb write_cb delete_cb cache_not_found allow_recursive)};
    $self->{write_back}     = $action eq 'write_back' && $options{write_cb} ? 1 : 0;
    $self->{empty_on_exit}  = $options{empty_on_exit} ? 1 : 0;
    $self->{unlink_on_exit} = exists $options{unlink_on_exit} ? $options{unlink_on_exit} : $place->{is_new};
    Carp::croak('`unlink_on_exit` needs `share_file`') if $self->{unlink_on_exit} && !$place->{share_file};

    # In the constructor, unlike in set(), 0 stands for no limit.
    $self->{ttl} = $options{expire_time} ? ttl_after($options{expire_time}) : OF_CACHE;
    Carp::croak("`expire_time` is a time such as 90, '10m' or 'never', and not '$options{expire_time}'")
        if $self->{ttl} == NOW;

    my $flags = 0;
    $flags |= IS_CODED       if $self->{serialize} || $self->{compress};
    $flags |= READS_THROUGH  if $self->{read_cb}   || $self->{write_back};
    $flags |= WRITES_THROUGH if $self->{write_cb};
    $self->_open($self->{url}, $flags, $self->{ttl}, _name($options{key_prefix} // ''));
    chmod $options{permissions}, $self->{share_file}
        or Carp::croak("the permissions of $self->{share_file} cannot be changed: $!")
        if defined $options{permissions};
    $self->_check_writers("the serializer '$self->{runs_code}'", "serializer => 'json' or ''")
        if $self->{runs_code} && !$options{trusts_others};
    Scalar::Util::weaken($LiveCaches{ Scalar::Util::refaddr($self) } = $self)
        if $self->{empty_on_exit} || $self->{write_back};
    return $self;
}

# Hash entries of every object.
sub _of_new_object { return (owner => _here(), counted => [0, 0]) }

# Returns an object for the same cache with other keys, for plain strings.
sub _with_prefix {
    my ($self, $prefix) = @_;
    my $other = bless { serializer => '', ttl => $self->{ttl}, _of_new_object() }, __PACKAGE__;
    $other->_share($self, $prefix);
    return $other;
}

# Dies where others can have written values that run code when they are read; what makes them so, and what to take instead.
sub _check_writers {
    my ($self, $serializer, $instead) = @_;
    my $others = $self->_writable_by_others;
    return if $others eq '';
    Carp::croak("others can write to $others, and values of $serializer run code when they are read: use $instead, or say"
            . ' trusts_others => 1');
}

# This process and thread.
sub _here { return $$ . '-' . ($INC{'threads.pm'} ? threads->tid : 0) }

# Whether this process and thread made the cache.
sub _is_owner { return $_[0]{owner} eq _here() }

# Between a program's values and those of the cache.

sub _encoded {
    my $self = shift;
    my $value = $self->{serialize} ? $self->{serialize}->(\$_[0]) : $_[0];
    return $self->{compress} ? $self->{compress}->($value) : $value;
}

sub _decoded {
    my ($self, $value) = @_;
    return undef if !defined $value;
    # A counter is digits, which none of our own forms are but a number of JSON.
    if ($self->{has_own_forms} && $value =~ /\A[0-9]{1,20}\z/) {
        return $self->{serialize} ? 0 + $value : $value;
    }
    if ($self->{uncompress}) {
        $value = $self->{uncompress}->($value);
        Carp::croak('this value was not compressed as this cache does it: another program has written it') if !defined $value;
    }
    return $value if !$self->{deserialize};
    my $reference = $self->{deserialize}->($value);
    Carp::croak("this value is not of the serializer '$self->{serializer}': another program has written it") if !ref $reference;
    return $$reference;
}

# Returns the TTL that options of a write name, in milliseconds.
sub _ttl {
    my ($self, $options) = @_;
    return $self->{ttl} if !defined $options;
    return ttl_after($options) if !ref $options;
    Carp::croak('there is no `modseq`: take a lease() before you compute, and set with it') if exists $options->{modseq};
    return $options->{expire_on} == -1 ? $self->{ttl} : ttl_until($options->{expire_on})
        if defined $options->{expire_on};
    return ttl_after($options->{expire_time}) if defined $options->{expire_time};
    return $self->{ttl};
}

# Reading and writing. get(), set() and lease() are in Haypile.xs; the first two go on here where they have more to do.

sub _get {
    my ($self, $key, $options) = @_;
    Carp::croak('there is no `modseq`: gets() returns the version of an entry') if $options && exists $options->{modseq};
    my @found = $self->_read($key);
    return $self->_decoded($found[0]) if @found;
    return $self->_read_through($key);
}

# Returns the value of a key that the cache does not have.
sub _read_through {
    my ($self, $key) = @_;
    if (my $changed = $self->_restored($key)) { return $self->_decoded($changed->{value}) }
    my $read = $self->{read_cb} or return undef;
    return $self->_computed($key, $self->{ttl}, sub {
        my $lock = $self->{allow_recursive} ? undef : $self->_locked;
        my $value;
        # A block is a loop of one round: `next` and `last` of the callback leave that, and nothing of ours.
        { $value = $read->($self->{context}, $key) }
        return defined $value || $self->{cache_not_found} ? ($value) : ();
    });
}

# Returns the value of a key; where the cache has none, this is the only process that computes it. Without a value from the
# sub nothing is stored.
sub _computed {
    my ($self, $key, $ttl, $code) = @_;
    my ($name, $here) = (_name($key), _here());
    Carp::croak("the computation of '$key' asks for '$key'") if ($self->{computing}{$name} // '') eq $here;
    my ($value, $claim) = my @claimed = $self->_claim($key, $ttl == NOW ? 1 : $ttl);
    return $self->_decoded($value) if @claimed && !$claim;
    local $self->{computing}{$name} = $here;
    my @computed = $code->();
    return undef if !@computed;
    # Without a claim, the key is too long, and the value is of this caller alone.
    $claim->complete($self->_encoded($computed[0])) if $claim && $ttl != NOW;
    return $computed[0];
}

sub compute {
    my ($self, $key, $code, $options) = @_;
    Carp::croak('compute() needs a key and a sub') if !defined $key || ref $code ne 'CODE';
    $self->_restored($key);
    return $self->_computed($key, $self->_ttl($options), sub { return scalar $code->($key) });
}

sub _set {
    my ($self, $key, undef, $options) = @_;
    my $ttl    = $self->_ttl($options);
    my $lease  = ref $options ? $options->{lease} : undef;
    my $value  = $self->_encoded($_[2]);
    my $at     = _moment();
    my $stored = $self->_put($key, $value, $ttl, $lease);
    # A value under a lease that was refused is older than what others have written.
    $self->_changed($key, $_[2], $value, $ttl, $stored, $at) if $self->{write_cb} && ($stored || !defined $lease);
    return $stored ? 1 : 0;
}

# Writes a value that has its form, and returns whether it was stored; one that expires at once leaves no entry.
sub _put {
    my ($self, $key, $value, $ttl, $lease) = @_;
    return $self->_write($key, $value, $ttl, $lease) if $ttl != NOW;
    $self->_remove($key);
    return 1;
}

# Tells the store below of a change, which was made at a moment: at once, or later.
sub _changed {
    my ($self, $key, undef, $value, $ttl, $stored, $at) = @_;
    my $expires_on = expires_on($ttl);
    if ($self->{write_back}) {
        my $name = _name($key);
        $self->_note($name, $at);
        if ($stored && $ttl != NOW) {
            my $dirty = $self->_dirty;
            # The text of an object that may change.
            $value = "$value" if defined $value;
            $dirty->{$name} = { key => "$key", value => $value, expires_on => $expires_on, at => $at };
            $self->_write_back if keys %$dirty > WRITE_BACK_LIMIT;
            return;
        }
        delete $self->_dirty->{$name};
    }
    $self->_tell_below($key, $_[2], $expires_on);
    return;
}

# Writes a value to the store below, whose failures are its own.
sub _tell_below {
    my ($self, $key, $value, $expires_on) = @_;
    eval {{ $self->{write_cb}->($self->{context}, $key, $value, $expires_on) }};
    return;
}

# Writes back a change that has waited.
sub _write_back_one {
    my ($self, $changed) = @_;
    # Whatever makes a value of bytes may fail too.
    eval {{ $self->_tell_below($changed->{key}, $self->_decoded($changed->{value}), $changed->{expires_on}) }};
    return;
}

# Now, as texts of one length that compare as numbers do.
sub _moment { return sprintf '%018.6f', Time::HiRes::time() }

# The bytes of a key, by which hashes know it.
sub _name {
    my $name = "$_[0]";
    utf8::downgrade($name, 1) or utf8::encode($name);
    return $name;
}

# Returns the changes that this process and thread have not written back. Others leave them to it.
sub _dirty {
    my ($self) = @_;
    my $here = _here();
    @$self{qw(dirty dirty_owner)} = ({}, $here) if !$self->{dirty} || $self->{dirty_owner} ne $here;
    return $self->{dirty};
}

# Before the name of an entry, the key of a note: the moment of its latest change or removal by a cache with write_back, in whatever process.
# Alone, of the last clear(). Without it, an older change that waits elsewhere would overwrite a newer one, or come back.
use constant { NOTE => "\0haypile:write_back\0", NOTES_LAST_MS => 86_400_000 };

sub _note {
    my ($self, $name, $at) = @_;
    $self->_write(NOTE . $name, $at, NOTES_LAST_MS);
    return;
}

# Whether nobody has changed the entry since.
sub _is_latest {
    my ($self, $changed) = @_;
    for my $note (NOTE, NOTE . _name($changed->{key})) {
        my ($at) = $self->_read($note);
        return 0 if defined $at && $at gt $changed->{at};
    }
    return 1;
}

# Puts a change that waits back into the cache, which has evicted it, and returns it; nothing if there is none, or it is not the latest. One
# that has expired is written back.
sub _restored {
    my ($self, $key) = @_;
    return if !$self->{write_back};
    my ($dirty, $name) = ($self->_dirty, _name($key));
    my $changed = $dirty->{$name} or return;
    return if $self->_exists($key);
    if (!$self->_is_latest($changed)) {
        delete $dirty->{$name};
        return;
    }
    my $ttl = $self->_ttl({ expire_on => $changed->{expires_on} });
    if ($ttl == NOW) {
        delete $dirty->{$name};
        $self->_write_back_one($changed);
        return;
    }
    $self->_add($key, $changed->{value}, $ttl);
    return $changed;
}

# Writes back all changes, or those whose entries have expired; not those that others have changed since.
sub _write_back {
    my ($self, $only_expired) = @_;
    return if $self->{is_writing_back};
    local $self->{is_writing_back} = 1;
    my $dirty = $self->_dirty;
    for my $name (keys %$dirty) {
        # A callback may have changed others.
        my $changed = $dirty->{$name} or next;
        my $expires_on = $changed->{expires_on};
        next if $only_expired && ($expires_on <= 0 || $expires_on > Time::HiRes::time());
        my $is_latest = $self->_is_latest($changed);
        delete $dirty->{$name};
        $self->_write_back_one($changed) if $is_latest;
    }
    return;
}

sub add     { my ($self, $key, undef, $options) = @_; return $self->_conditional('_add',     $key, $_[2], $options) }
sub replace { my ($self, $key, undef, $options) = @_; return $self->_conditional('_replace', $key, $_[2], $options) }

sub _conditional {
    my ($self, $method, $key, undef, $options) = @_;
    my ($ttl, $value) = ($self->_ttl($options), $self->_encoded($_[3]));
    Carp::croak('an entry that expires at once is not added: it needs a time') if $ttl == NOW;
    $self->_restored($key);
    my $at     = _moment();
    my $stored = $self->$method($key, $value, $ttl) > 0;
    $self->_changed($key, $_[3], $value, $ttl, 1, $at) if $stored && $self->{write_cb};
    return $stored;
}

sub gets {
    my ($self, $key) = @_;
    $self->_restored($key);
    my ($value, $version) = $self->_read_versioned($key) or return;
    return ($self->_decoded($value), $version);
}

sub cas {
    my ($self, $key, undef, $version, $options) = @_;
    my ($ttl, $value, $at) = ($self->_ttl($options), $self->_encoded($_[2]), _moment());
    my $stored = ($ttl == NOW
        ? $self->_remove_version($key, $version)
        : $self->_write_version($key, $value, $ttl, $version)) > 0;
    $self->_changed($key, $_[2], $value, $ttl, 1, $at) if $stored && $self->{write_cb};
    return $stored;
}

sub touch {
    my ($self, $key, $time) = @_;
    my $ttl = defined $time ? ttl_after($time) : $self->{ttl};
    $self->_restored($key);
    return $self->_remove($key) if $ttl == NOW;
    my $is_there = $self->_touch($key, $ttl);
    if ($is_there && $self->{write_back} && (my $changed = $self->_dirty->{ _name($key) })) {
        $changed->{expires_on} = expires_on($ttl);
    }
    return $is_there;
}

sub incr { my ($self, $key, $delta, $options) = @_; return $self->_counted($key, $delta // 1, 0, $options) }
sub decr { my ($self, $key, $delta, $options) = @_; return $self->_counted($key, $delta // 1, 1, $options) }

sub _counted {
    my ($self, $key, $delta, $is_down, $options) = @_;
    Carp::croak("a counter counts by whole numbers, and not by '$delta'") if $delta !~ /\A-?[0-9]{1,20}\z/;
    $is_down = !$is_down if $delta =~ s/^-//;
    my $initial = $options ? $options->{initial} : undef;
    my $ttl     = $self->_ttl($options);
    Carp::croak("a counter begins with a whole number, and not with '$initial'") if ($initial // 0) !~ /\A[0-9]{1,20}\z/;
    Carp::croak('a counter that expires at once is none: it needs a time') if $ttl == NOW;
    $self->_restored($key);
    while (1) {
        my $at = _moment();
        my $number = $self->_count($key, $delta, $is_down);
        if (!defined $number && defined $initial) {
            my $first = $is_down ? ($initial > $delta ? $initial - $delta : 0) : $initial + $delta;
            my $added = $self->_add($key, "$first", $ttl);
            # Somebody else was faster.
            next if $added == 0;
            $number = $first if $added > 0;
        }
        if (defined $number && $self->{write_cb}) {
            # Its time stays, unless it is new.
            my (undef, undef, $ms) = $self->_read_versioned($key);
            my $left = !defined $ms ? $ttl : $ms < 0 ? NEVER : $ms || 1;
            $self->_changed($key, $number, "$number", $left, 1, $at);
        }
        return $number;
    }
}

# Tries before get_and_set has others wait for it, and before it gives up.
use constant { TRIES_ALONE => 10, MOST_TRIES => 1000 };

sub get_and_set {
    my ($self, $key, $code, $tries, $claim) = @_;
    $tries //= 0;
    Carp::croak("'$key' has changed $tries times while the sub ran: the sub must not change it itself") if $tries >= MOST_TRIES;
    # Of those who do the same, one at a time.
    (undef, $claim) = $self->_claim("$key\0get_and_set", OF_CACHE, 1000) if $tries == TRIES_ALONE;
    $self->_restored($key);
    my ($stored, $version, $ms) = my @found = $self->_read_versioned($key);
    my $value = $self->_decoded($stored);
    if (!@found && ($self->{read_cb} || $self->{write_back})) {
        $value = $self->_read_through($key);
        ($stored, $version, $ms) = @found = $self->_read_versioned($key);
        $value = $self->_decoded($stored) if @found;
    }
    my %about = @found ? (expire_on => $ms < 0 ? 0 : Time::HiRes::time() + $ms / 1000) : ();
    my @new = $code->($key, $value, \%about);
    return wantarray ? ($value, 0) : $value if !@new;
    my ($new, $options) = @new;
    die "get_and_set callback options must be a hash reference\n" if defined $options && ref $options ne 'HASH';
    my ($ttl, $encoded, $at) = ($self->_ttl($options), $self->_encoded($new), _moment());
    my $outcome
        = $ttl == NOW ? (@found ? $self->_remove_version($key, $version) : 1)
        : @found      ? $self->_write_version($key, $encoded, $ttl, $version)
        :               $self->_add($key, $encoded, $ttl);
    if ($outcome == 0) {
        # Another process has changed the entry in the meantime: again, with what it is now. No loop, for the sub may leave one.
        @_ = ($self, $key, $code, $tries + 1, $claim);
        goto &get_and_set;
    }
    $self->_changed($key, $new, $encoded, $ttl, $outcome > 0, $at) if $self->{write_cb};
    my $did_store = $outcome > 0 ? 1 : 0;
    return wantarray ? ($new, $did_store) : $new;
}

sub exists {
    my ($self, $key) = @_;
    $self->_restored($key);
    return $self->_exists($key);
}

sub remove {
    my ($self, $key, $options) = @_;
    Carp::croak('there is no `modseq`: a removal wins over what was computed before it')
        if $options && exists $options->{modseq};
    my $is_waiting = $self->_restored($key) ? 1 : 0;
    my $removed    = $self->_remove($key);
    $self->_removed($key) if $self->{write_back} || $self->{delete_cb};
    return $removed || $is_waiting;
}

*delete = \&remove;

sub _removed {
    my ($self, $key) = @_;
    if ($self->{write_back}) {
        delete $self->_dirty->{ _name($key) };
        $self->_note(_name($key), _moment());
    }
    eval {{ $self->{delete_cb}->($self->{context}, $key) }} if $self->{delete_cb};
    return;
}

sub get_and_remove {
    my ($self, $key) = @_;
    my ($value, $removed) = (undef, 0);
    while (my ($stored, $version) = $self->_read_versioned($key)) {
        next if $self->_remove_version($key, $version) == 0;
        ($value, $removed) = ($self->_decoded($stored), 1);
        last;
    }
    if (!$removed && ($self->{read_cb} || $self->{write_back})) {
        $value = $self->_read_through($key);
        $removed = $self->_remove($key) ? 1 : 0;
    }
    $self->_removed($key) if $self->{write_back} || $self->{delete_cb};
    return wantarray ? ($value, $removed) : $value;
}

sub expire {
    my ($self, $key) = @_;
    my $changed   = $self->{write_back} ? delete $self->_dirty->{ _name($key) } : undef;
    my $is_latest = $changed && $self->_is_latest($changed);
    my $removed   = $self->_remove($key);
    $self->_write_back_one($changed) if $is_latest;
    return $removed;
}

# Many keys at once.

sub multi_get {
    my ($self, $page_key, $keys) = @_;
    if ($self->{write_back}) { $self->_restored("$page_key-$_") for @$keys }
    my @found = $self->_read_many([map { "$page_key-$_" } @$keys]);
    my %values;
    for my $at (0 .. $#$keys) {
        $values{ $keys->[$at] } = $self->_decoded(${ $found[$at] }) if $found[$at];
    }
    return \%values;
}

sub multi_set {
    my ($self, $page_key, $values, $options) = @_;
    my $ttl = $self->_ttl($options);
    for my $key (keys %$values) {
        my $value = $self->_encoded($values->{$key});
        $self->_put("$page_key-$key", $value, $ttl);
    }
    return 1;
}

# The whole cache.

# Returns the text that a key was, as far as that is certain: bytes that are the UTF-8 of a character above 255 come from text.
sub _key_text {
    my ($key) = @_;
    if ($key =~ /[\xC4-\xF4]/) {
        my $text = $key;
        return $text if utf8::decode($text) && $text =~ /[^\x00-\xFF]/;
    }
    return $key;
}

# Returns a sub that returns the bytes of one key of this object after another.
sub _own_keys {
    my ($self) = @_;
    my ($keys, $prefix) = ($self->_keys, $self->_prefix);
    return sub {
        while (defined(my $key = $keys->next)) {
            next if index($key, $prefix) != 0;
            $key = substr $key, length $prefix;
            return $key if $self->_exists($key);
        }
        return undef;
    };
}

sub key_iterator {
    my ($self) = @_;
    my $next = $self->_own_keys;
    my @waiting = $self->{write_back} ? map { $_->{key} } values %{ $self->_dirty } : ();
    return sub {
        while (defined(my $key = $next->())) {
            return _key_text($key) if index($key, NOTE) != 0;
        }
        while (defined(my $key = shift @waiting)) {
            return $key if !$self->_exists($key);
        }
        return undef;
    };
}

sub get_keys {
    my ($self, $mode) = @_;
    my $next = $self->key_iterator;
    my @listed;
    while (defined(my $key = $next->())) {
        push @listed, $mode ? $self->_details($key, $mode) : $key;
    }
    return @listed;
}

sub _details {
    my ($self, $key, $mode) = @_;
    my $changed = $self->{write_back} && $self->_dirty->{ _name($key) };
    my ($stored, undef, $ms) = my @found = $self->_read_versioned($key);
    return if !@found && !$changed;
    my $expires_on = !@found ? $changed->{expires_on} : $ms < 0 ? 0 : int(Time::HiRes::time() + $ms / 1000 + 0.5);
    my %details = (key => $key, expire_on => $expires_on, flags => $changed ? 1 : 0, last_access => undef);
    $details{value} = $self->_decoded(@found ? $stored : $changed->{value}) if $mode > 1;
    return \%details;
}

sub get_statistics {
    my ($self, $clear) = @_;
    my @counts = $self->_counts;
    my @since  = map { $counts[$_] - $self->{counted}[$_] } 0, 1;
    $self->{counted} = \@counts if $clear;
    return @since;
}

sub clear {
    my ($self) = @_;
    %{ $self->_dirty } = () if $self->{write_back};
    $self->_clear_own;
    $self->_note('', _moment()) if $self->{write_back};
    return;
}

# Removes all entries of this object.
sub _clear_own {
    my ($self) = @_;
    # The notes of changes stay.
    if ($self->_prefix eq '' && !$self->{write_back}) {
        $self->_clear;
    } else {
        my $next = $self->key_iterator;
        while (defined(my $key = $next->())) { $self->_remove($key) }
    }
    return;
}

sub empty {
    my ($self, $only_expired) = @_;
    $self->_write_back($only_expired) if $self->{write_back};
    # What others have changed is theirs to write back.
    $self->_clear_own if !$only_expired;
    return;
}

# Entries that have expired are not returned, and their room is used again: nothing is left to do.
sub purge { return }

sub warnings { return split /\n/, $_[0]->_warnings }

sub limits {
    my ($self) = @_;
    my %limits;
    @limits{qw(key_bytes value_bytes capacity_bytes)} = $self->_limits;
    return \%limits;
}

# The end.

sub close {
    my ($self) = @_;
    return if !$self->is_open;
    Carp::croak('a callback cannot close its cache') if $self->{is_writing_back} || $self->_is_locked;
    my $is_owner = $self->_is_owner;
    eval { $self->_write_back if $self->{write_back}; $self->empty if $is_owner && $self->{empty_on_exit}; 1 } or Carp::carp($@);
    delete $LiveCaches{ Scalar::Util::refaddr($self) };
    $self->_close;
    # Not in taint mode, where the path may be anybody's.
    eval { unlink $self->{share_file} } if $is_owner && $self->{unlink_on_exit};
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($., $@, $!, $^E, $?);
    eval { $self->close };
    return;
}

END {
    local $?;
    for my $cache (grep { defined } values %LiveCaches) {
        eval { $cache->close };
    }
}

1;
