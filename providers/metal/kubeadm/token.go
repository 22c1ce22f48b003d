package kubeadm

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// MaxTokenLife is how long a token for a join may live.
const MaxTokenLife = 10 * time.Minute

// joinLabel is on the tokens that Grant made, with the node each is for.
const joinLabel = "stoke.dev/join"

// Token lets one machine join a cluster. Printing it shows its id alone.
type Token struct{ id, secret string }

// NewToken makes a token, which nobody knows yet.
func NewToken() Token {
	// rand.Text is 26 characters of base 32, 130 bits.
	id, secret := strings.ToLower(rand.Text()), strings.ToLower(rand.Text())
	return Token{id[:6], secret[:16]}
}

// ID is the part of the token that is no secret.
func (t Token) ID() string       { return t.id }
func (t Token) String() string   { return t.id + ".(secret)" }
func (t Token) GoString() string { return t.String() }

func (t Token) reveal() string { return t.id + "." + t.secret }

var tokenForm = pattern.New(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// redacted is text without tokens.
func redacted(text string) string { return tokenForm.ReplaceAllString(text, "(token)") }

const kubectl = `export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/local/sbin" KUBECONFIG=/etc/kubernetes/admin.conf
`

// grant: the API server's clock decides when a token has expired, so it is asked.
const grant = `# allow one machine to join the cluster
set -e
` + kubectl + `kubectl --namespace kube-system delete secret --selector "stoke.dev/join=$2" --ignore-not-found >/dev/null
end=$(date -u -d "@$(($(date +%s) + $1))" +%Y-%m-%dT%H:%M:%SZ)
sed "s/EXPIRATION/$end/" | kubectl apply --server-side --force-conflicts --field-manager stoke -f - >/dev/null`

// Grant makes a token valid, on the control plane's machine, for the node of that
// name and no longer than life. Earlier ones for the same node end.
func Grant(ctx context.Context, controlPlane host.Machine, t Token, node string, life time.Duration) error {
	if life < time.Second || life > MaxTokenLife {
		return fmt.Errorf("a token for a join cannot live for %s: at most %s, at least a second", life, MaxTokenLife)
	}
	label := labelValue(node)
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
		"metadata": map[string]any{"name": secretName(t.id), "namespace": "kube-system", "labels": map[string]any{joinLabel: label}},
		"stringData": map[string]any{
			"token-id": t.id, "token-secret": t.secret, "expiration": "EXPIRATION", "auth-extra-groups": nodeGroup,
			"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true", "description": "stoke: " + node + " joins",
		},
	})
	if err != nil {
		return fmt.Errorf("write a token's Secret: %w", err)
	}
	_, err = controlPlane.Run(ctx, host.Command{
		Args: []string{"sh", "-c", grant, "sh", strconv.Itoa(int(life / time.Second)), label}, Stdin: manifest,
	})
	if err != nil {
		return fmt.Errorf("allow %s to join: %w", node, err)
	}
	return nil
}

// labelValue is a node's name where labels can have it, or else its hash.
func labelValue(node string) string {
	if len(validation.IsValidLabelValue(node)) == 0 && node != "" {
		return node
	}
	sum := sha256.Sum256([]byte(node))
	return hex.EncodeToString(sum[:16])
}

func secretName(id string) string { return "bootstrap-token-" + id }

const revoke = `# end what allowed a machine to join
` + kubectl + `exec kubectl --namespace kube-system delete secret "$1" --ignore-not-found`

// Revoke ends a token, which may have ended already.
func Revoke(ctx context.Context, controlPlane host.Machine, t Token) error {
	if _, err := host.Script(ctx, controlPlane, revoke, secretName(t.id)); err != nil {
		return fmt.Errorf("end the token %s: %w", t.id, err)
	}
	return nil
}

const revokeFor = `# end what allowed a node to join
` + kubectl + `exec kubectl --namespace kube-system delete secret --selector "` + joinLabel + `=$1" --ignore-not-found`

// RevokeFor ends what Grant has made for the node of that name, whoever did so and
// was killed.
func RevokeFor(ctx context.Context, controlPlane host.Machine, node string) error {
	if _, err := host.Script(ctx, controlPlane, revokeFor, labelValue(node)); err != nil {
		return fmt.Errorf("end the tokens for %s: %w", node, err)
	}
	return nil
}

// revokeInit lists names and descriptions, the latter in base64 as Secrets have
// them: no jsonpath filter can be given what varies.
const revokeInit = `# end the token that kubeadm init was given
set -e
` + kubectl + `kubectl --namespace kube-system get secret --field-selector type=bootstrap.kubernetes.io/token \
	-o 'jsonpath={range .items[*]}{.metadata.name} {.data.description}{"\n"}{end}' | while read -r name description; do
	[ "$(printf %s "$description" | base64 -d)" != "$1" ] || kubectl --namespace kube-system delete secret "$name" --ignore-not-found
done`

// RevokeInit ends every token that Init has made, those of runs that were killed
// too.
func RevokeInit(ctx context.Context, controlPlane host.Machine) error {
	if _, err := host.Script(ctx, controlPlane, revokeInit, initToken); err != nil {
		return fmt.Errorf("end the token of kubeadm init: %w", err)
	}
	return nil
}

// Tokens lists the ids of tokens that are alive, whoever made them.
func Tokens(ctx context.Context, controlPlane host.Machine) ([]string, error) {
	out, err := host.LookScript(ctx, controlPlane, tokens)
	if err != nil {
		return nil, fmt.Errorf("list the cluster's tokens: %w", err)
	}
	var ids []string
	for name := range bytes.FieldsSeq(out) {
		ids = append(ids, strings.TrimPrefix(string(name), secretName("")))
	}
	return ids, nil
}

const tokens = `# list what allows machines to join
` + kubectl + `exec kubectl --namespace kube-system get secret --field-selector type=bootstrap.kubernetes.io/token -o 'jsonpath={.items[*].metadata.name}'`
