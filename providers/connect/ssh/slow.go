package ssh

import (
	"context"
	"strings"
	"time"
)

// slowSudo is the time of sudo after which the user sees the reason.
const slowSudo = 3 * time.Second

// whySlow prints the machine's name where its file of hosts does not have it: sudo
// looks it up whenever it runs, and asks DNS then.
const whySlow = `h=$(uname -n); awk -v h="$h" '{ sub(/#.*/, ""); for (i = 2; i <= NF; i++) if ($i == h) f = 1 } END { exit !f }' /etc/hosts || printf %s "$h"`

// watch reports the reason of a slow sudo, once for each connection. It returns
// what ends the watch.
func (c *Client) watch(ctx context.Context, tell func(ctx context.Context, host, why string), begun <-chan struct{}) (end func()) {
	if tell == nil || !c.credential.Sudo {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		timer := time.NewTimer(slowSudo)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-begun:
			return
		case <-ctx.Done():
			return
		}
		if c.looks.in.Load() {
			return // it waits for another look
		}
		c.slow.Do(func() { tell(ctx, c.Host, c.whySlow(ctx)) })
	}()
	return func() {
		cancel()
		<-over
	}
}

func (c *Client) whySlow(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, slowSudo)
	defer cancel()
	out, err := c.Run(ctx, Command{Args: []string{"sh", "-c", whySlow}})
	if name := printable(strings.TrimSpace(string(out.Stdout))); err == nil && name != "" {
		return "its host name " + name + " is not in its /etc/hosts, so that sudo asks DNS for it each time: add the line \"127.0.1.1 " + name + "\" there"
	}
	return "it may wait for DNS, a directory of users or a module of PAM: see journalctl -t sudo there"
}
