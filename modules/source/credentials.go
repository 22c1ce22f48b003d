package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	svchost "github.com/hashicorp/terraform-svchost"
)

// Credentials are the tokens of registries. The environment (TF_TOKEN_ and
// the host) comes before what was configured, and that before the helper.
type Credentials struct {
	Environ []string
	Tokens  map[svchost.Hostname]string
	Helper  []string // a program and its arguments; none: no helper

	mu    sync.Mutex
	asked map[svchost.Hostname]string // what the helper has answered
}

// token finds the token of a host, "" where there is none.
func (c *Credentials) token(ctx context.Context, host svchost.Hostname) (string, error) {
	if c == nil {
		return "", nil
	}
	if token := c.fromEnvironment(host); token != "" {
		return token, nil
	}
	if token := c.Tokens[host]; token != "" || len(c.Helper) == 0 {
		return token, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if token, ok := c.asked[host]; ok {
		return token, nil
	}
	token, err := c.ask(ctx, host)
	if err == nil {
		if c.asked == nil {
			c.asked = map[svchost.Hostname]string{}
		}
		c.asked[host] = token
	}
	return token, err
}

// fromEnvironment looks for TF_TOKEN_example_com: dots are underscores, and
// dashes may be two of them.
func (c *Credentials) fromEnvironment(host svchost.Hostname) string {
	for i := len(c.Environ) - 1; i >= 0; i-- {
		rest, ok := strings.CutPrefix(c.Environ[i], "TF_TOKEN_")
		if !ok {
			continue
		}
		name, token, _ := strings.Cut(rest, "=")
		name = strings.ReplaceAll(name, "__", "-")
		name = strings.ReplaceAll(name, "_", ".")
		if known, err := svchost.ForComparison(name); err == nil && known == host {
			return token
		}
	}
	return ""
}

// ask runs the helper, by Terraform's protocol for such programs.
func (c *Credentials) ask(ctx context.Context, host svchost.Hostname) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Helper[0], append(c.Helper[1:len(c.Helper):len(c.Helper)], "get", host.String())...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		text := firstLine(said.String())
		if text == "" {
			text = err.Error()
		}
		return "", fmt.Errorf("the credentials helper %s failed: %s", c.Helper[0], text)
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return "", errors.New("the credentials helper " + c.Helper[0] + " answers no JSON object")
	}
	return answer.Token, nil
}
