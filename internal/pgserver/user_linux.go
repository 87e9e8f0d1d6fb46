package pgserver

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged runs a child as somebody else if we are root, which PostgreSQL refuses, and
// lets it die with us.
func unprivileged() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if uid, gid, ok := otherUser(); ok {
		attr.Credential = &syscall.Credential{Uid: uid, Gid: gid, NoSetGroups: false}
	}
	return attr
}

// giveAway makes the unprivileged user the owner of these paths.
func giveAway(paths ...string) error {
	uid, gid, ok := otherUser()
	if !ok {
		return nil
	}
	for _, p := range paths {
		if err := os.Chown(p, int(uid), int(gid)); err != nil {
			return fmt.Errorf("pgserver: %w", err)
		}
	}
	return nil
}

// otherUser is whom root runs servers as.
func otherUser() (uid, gid uint32, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		id, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		group, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return uint32(id), uint32(group), true
		}
	}
	return 65534, 65534, true
}
