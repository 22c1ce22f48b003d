package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// entryMark is the extension of entries in a kubeconfig that stoke wrote.
const entryMark = "stoke.dev/kubeconfig"

// lockPatience is how long another program may write a kubeconfig. One that was
// killed leaves its lock.
const lockPatience = 10 * time.Second

// errOthers: the entry was not written by stoke.
var errOthers = errors.New("not stoke's")

// markOf is the mark of an entry: which object of which state it is for.
func markOf(plugin *clientapi.ExecConfig) (*runtime.Unknown, error) {
	env := map[string]string{}
	for _, v := range plugin.Env {
		env[v.Name] = v.Value
	}
	text, err := json.Marshal(map[string]any{"args": plugin.Args, "env": env})
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}, err
}

// sameMark reports whether an entry that is there was written for the same
// object.
func sameMark(there, now map[string]runtime.Object) bool {
	a, ok := there[entryMark].(*runtime.Unknown)
	b, fine := now[entryMark].(*runtime.Unknown)
	if !ok || !fine {
		return false
	}
	var x, y map[string]any
	if json.Unmarshal(a.Raw, &x) != nil || json.Unmarshal(b.Raw, &y) != nil {
		return false
	}
	first, err := json.Marshal(x)
	second, wrong := json.Marshal(y)
	return err == nil && wrong == nil && string(first) == string(second)
}

// mergePath is the kubeconfig that the entries of a name belong in.
func (s *session) mergePath(name string) string {
	options := clientcmd.NewDefaultPathOptions()
	options.GlobalFile = filepath.Join(s.home(), ".kube", "config")
	for _, one := range options.GetLoadingPrecedence() { // kubectl takes the first that has it
		if there, err := clientcmd.LoadFromFile(one); err == nil && there.Contexts[name] != nil {
			return one
		}
	}
	return options.GetDefaultFilename()
}

// merge puts the entries of a name into the kubeconfig that kubectl reads.
func (s *session) merge(ctx context.Context, config *clientapi.Config, name string) error {
	path := s.mergePath(name)
	current, err := mergeInto(ctx, path, config, name)
	switch {
	case errors.Is(err, errOthers):
		s.complainOnStderr(problem("Foreign entry", "%s has an entry %q that stoke did not write for this object. It was left as it is: name another one with -context=NAME.", path, name))
		return failed
	case err != nil:
		s.complainOnStderr(problem("Kubeconfig not written", "%s", asSentence(err.Error())))
		return failed
	case current == name:
		s.printf("%s has the context %s now, which is the current one.\n", path, name)
	default:
		s.printf("%s has the context %s now. Use it with:\n  kubectl --context '%s' get nodes\n", path, name, name)
	}
	return nil
}

// home is the user's home folder.
func (s *session) home() string {
	if home := s.getenv("HOME"); home != "" {
		return home
	}
	home, _ := os.UserHomeDir() // without one, the path is relative
	return home
}

// mergeInto writes a kubeconfig, under the lock that kubectl takes, whole or not
// at all, for its owner alone. It returns the current context, which it sets
// where there is none.
func mergeInto(ctx context.Context, path string, config *clientapi.Config, name string) (current string, err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	unlock, err := lockKubeconfig(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	all, err := clientcmd.LoadFromFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		all = clientapi.NewConfig()
	case err != nil: // the parser's error may quote what is secret
		return "", fmt.Errorf("%s cannot be read as a kubeconfig", path)
	}
	if !ours(all, config, name) {
		return "", errOthers
	}
	all.Clusters[name], all.AuthInfos[name], all.Contexts[name] = config.Clusters[name], config.AuthInfos[name], withNamespace(config.Contexts[name], all.Contexts[name])
	if all.CurrentContext == "" {
		all.CurrentContext = name
	}
	text, err := clientcmd.Write(*all)
	if err != nil {
		return "", err
	}
	return all.CurrentContext, writePrivate(path, text)
}

// writePrivate writes a file with mode 0600, whatever mode an existing file
// has.
func writePrivate(path string, text []byte) error {
	f, err := renameio.NewPendingFile(path, renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // it is gone, or of no use
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// ours reports whether all entries of a name are stoke's, for the same object, or
// are not there.
func ours(all, config *clientapi.Config, name string) bool {
	mark := config.Contexts[name].Extensions
	cluster, user, context := all.Clusters[name], all.AuthInfos[name], all.Contexts[name]
	return (cluster == nil || sameMark(cluster.Extensions, mark)) && (user == nil || sameMark(user.Extensions, mark)) && (context == nil || sameMark(context.Extensions, mark))
}

// withNamespace keeps the namespace that somebody chose.
func withNamespace(now, was *clientapi.Context) *clientapi.Context {
	if was != nil {
		now.Namespace = was.Namespace
	}
	return now
}

// lockKubeconfig takes the lock that clientcmd takes, with which kubectl writes.
func lockKubeconfig(ctx context.Context, lock string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			f.Close()
			return func() { _ = os.Remove(lock) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another program holds %s; where none runs, remove it", lock)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
