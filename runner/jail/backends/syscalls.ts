/**
 * The system calls that a seccomp filter refuses, with their numbers on x86-64 and arm64. Calls
 * added after the tables were unified (424 on) have the same number on both. Source: the kernel's
 * asm/unistd_64.h and asm-generic/unistd.h.
 */
import { must } from '../../../proto/common/must.ts';

/** AUDIT_ARCH_*: the architecture of the caller as the kernel reports it to a filter. */
export const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;

export type Architecture = keyof typeof AUDIT;

/** By name; undefined: that architecture has no such call. */
export const SYSCALLS = new Map<string, Record<Architecture, number | undefined>>();

/** Not needed by any of our programs; they reach the kernel, another process or another machine. */
export const ALWAYS = calls(`
  setns 308/268, mount 165/40, umount2 166/39, pivot_root 155/41, open_tree 428/428,
  open_tree_attr 467/467, move_mount 429/429, fsopen 430/430, fsconfig 431/431, fsmount 432/432,
  fspick 433/433, mount_setattr 442/442, ptrace 101/117, process_vm_readv 310/270,
  process_vm_writev 311/271, process_madvise 440/440, process_mrelease 448/448,
  pidfd_getfd 438/438, kcmp 312/272, io_uring_setup 425/425, io_uring_enter 426/426,
  io_uring_register 427/427, bpf 321/280, userfaultfd 323/282, perf_event_open 298/241,
  add_key 248/217, request_key 249/218, keyctl 250/219, fanotify_init 300/262,
  fanotify_mark 301/263, memfd_secret 447/447, open_by_handle_at 304/265,
  name_to_handle_at 303/264, kexec_load 246/104, kexec_file_load 320/294, init_module 175/105,
  finit_module 313/273, delete_module 176/106, reboot 169/142, swapon 167/224, swapoff 168/225,
  acct 163/89, quotactl 179/60, quotactl_fd 443/443, syslog 103/116, sethostname 170/161,
  setdomainname 171/162, iopl 172/-, ioperm 173/-, modify_ldt 154/-, settimeofday 164/170,
  clock_settime 227/112, clock_adjtime 305/266, adjtimex 159/171, vhangup 153/58,
  lookup_dcookie 212/18, nfsservctl 180/42, uselib 134/-, ustat 136/-, sysfs 139/-, _sysctl 156/-
`);

/** Needed by Chrome's sandbox. */
export const NAMESPACES = calls(`
  unshare 272/97, chroot 161/51, setuid 105/146, setgid 106/144, setreuid 113/145,
  setregid 114/143, setresuid 117/147, setresgid 119/149, setfsuid 122/151, setfsgid 123/152,
  setgroups 116/159, personality 135/92
`);

/** Needed by programs with children only. */
export const PROCESSES = calls(`
  fork 57/-, vfork 58/-, execveat 322/281, pidfd_open 434/434, capset 126/91, mbind 237/235,
  set_mempolicy 238/237, set_mempolicy_home_node 450/450, migrate_pages 256/238,
  move_pages 279/239
`);

/** Landlock keeps signals within the jail: a process with children may need them. */
export const BARE_ALONE = calls(`
  kill 62/129, tkill 200/130, tgkill 234/131, rt_sigqueueinfo 129/138, rt_tgsigqueueinfo 297/240,
  pidfd_send_signal 424/424, socketpair 53/199
`);

/** Not restricted by Landlock, and they reach objects of the same user. */
export const BARE = calls(`
  listen 50/201, chown 92/-, lchown 94/-, fchown 93/55, fchownat 260/54, setxattr 188/5,
  lsetxattr 189/6, fsetxattr 190/7, setxattrat 463/463, removexattr 197/14, lremovexattr 198/15,
  fremovexattr 199/16, removexattrat 466/466, file_setattr 469/469, inotify_add_watch 254/27,
  shmget 29/194, shmat 30/196, shmctl 31/195, msgget 68/186, msgsnd 69/189, msgrcv 70/188,
  msgctl 71/187, semget 64/190, semop 65/193, semtimedop 220/192, semctl 66/191, mq_open 240/180,
  mq_unlink 241/181
`);

/** The same; an installer makes programs executable. */
export const MODES = calls(`
  chmod 90/-, fchmod 91/52, fchmodat 268/53, fchmodat2 452/452, utime 132/-, utimes 235/-,
  futimesat 261/-, utimensat 280/88
`);

/** Refused for some of their arguments. */
calls(`
  clone 56/220, clone3 435/435, prlimit64 302/261, setpriority 141/140, ioprio_set 251/30,
  sched_setaffinity 203/122, sched_setscheduler 144/119, sched_setparam 142/118,
  sched_setattr 314/274, socket 41/198, sendto 44/206, sendmsg 46/211, sendmmsg 307/269,
  ioctl 16/29
`);

/** Undefined: that architecture has no such call. */
export function numberOf(name: string, architecture: Architecture): number | undefined {
  return must(SYSCALLS.get(name), `the numbers of ${name}`)[architecture];
}

/** Registers `name x64/arm64, ...`, where `-` is no call of that name. Returns the names. */
function calls(table: string): string[] {
  return table.split(',').map((entry) => {
    const [, name, x64, arm64] = /^\s*(\w+) (\d+)\/(\d+|-)\s*$/.exec(entry) ?? [];
    if (name === undefined) throw new Error(`not a system call with its numbers: ${entry}`);
    SYSCALLS.set(name, { x64: Number(x64), arm64: arm64 === '-' ? undefined : Number(arm64) });
    return name;
  });
}
