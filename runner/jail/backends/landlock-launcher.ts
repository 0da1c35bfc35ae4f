/**
 * Starts a process under Landlock: a script for Perl, which every Debian and Ubuntu has, can make
 * raw system calls, and starts in 2 ms. It applies the rules, another user and the filter to
 * itself, and executes the program. A failing step ends it before the program starts.
 *
 * Arguments: numbers (of prctl, seccomp, capset, setgroups, setresgid, setresuid; the handled
 * accesses: files, network, scopes; a uid or -1), the filter in hex, then `<rights> <path>` or
 * `port <number>` each, `--`, the command.
 */
export const LAUNCHER = `
use strict;
use warnings;

my ($numbers, $hex, @words) = @ARGV;
my ($prctl, $seccomp, $capset, $setgroups, $setresgid, $setresuid, $files, $network, $scopes, $uid)
  = map { $_ + 0 } split / /, $numbers;

sub must_do {
  my ($what, $result) = @_;
  die "$what: $!\\n" if $result < 0;
  return $result;
}

my $about = pack 'Q3', $files, $network, $scopes;
my $rules = must_do 'landlock', syscall 444, $about, length $about, 0;
while (@words) {
  my $word = shift @words;
  last if $word eq '--';
  my ($rights, $what) = split / /, $word, 2;
  if ($rights eq 'port') {
    my $rule = pack 'Q2', 2, $what;
    must_do $word, syscall 445, $rules, 2, $rule, 0;
    next;
  }
  sysopen my $file, $what, 0x280000 or die "$what: $!\\n"; # O_PATH | O_CLOEXEC
  my $rule = pack 'Q l', $rights, fileno $file;
  must_do $word, syscall 445, $rules, 1, $rule, 0;
}

if ($uid >= 0) {
  syscall $prctl, 24, $_, 0, 0, 0 for grep { $_ != 2 } 0 .. 63; # PR_CAPBSET_DROP
  # SECBIT_NO_SETUID_FIXUP: access() takes the search capability away from other users without it,
  # and Chrome then finds none of its files below a directory of root's
  syscall $prctl, 28, 4, 0, 0, 0;
  must_do 'keepcaps', syscall $prctl, 8, 1, 0, 0, 0;
  # SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP: access(2) ignores capabilities without the second,
  # and fontconfig asks it about each font; needs CAP_SETPCAP, which few containers lack
  syscall $prctl, 28, 20, 0, 0, 0;
  must_do 'setgroups', syscall $setgroups, 0, 0;
  must_do 'setresgid', syscall $setresgid, $uid, $uid, $uid;
  must_do 'setresuid', syscall $setresuid, $uid, $uid, $uid;
  my $self = pack 'L l', 0x20080522, 0;
  my $search = pack 'L6', 4, 4, 4, 0, 0, 0; # CAP_DAC_READ_SEARCH
  must_do 'capset', syscall $capset, $self, $search;
  must_do 'ambient', syscall $prctl, 47, 2, 2, 0, 0;
}
must_do 'pdeathsig', syscall $prctl, 1, 9, 0, 0, 0;
must_do 'no_new_privs', syscall $prctl, 38, 1, 0, 0, 0;
must_do 'restrict', syscall 446, $rules, 0;
my $filter = pack 'H*', $hex;
my $program = pack 'S x6 P', length($filter) / 8, $filter;
must_do 'seccomp', syscall $seccomp, 1, 0, $program;
exec { $words[0] } @words or die "$words[0]: $!\\n";
`;
