package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/stokehq/stoke/plan/state/store/object"
)

// client sends requests about Secrets and Leases of one namespace.
type client struct {
	core, coordination rest.Interface
	namespace          string
	tries              patience
	close              func()
}

// patience is how often a request is tried, and how long the pauses between
// are. All writes have a condition, so that repeating a successful one does no
// harm.
type patience struct {
	attempts    int
	first, most time.Duration
}

// A resource is what requests are about.
type resource string

const (
	secrets resource = "secrets"
	leases  resource = "leases"
)

func (c *client) api(of resource) rest.Interface {
	if of == leases {
		return c.coordination
	}
	return c.core
}

func (c *client) get(ctx context.Context, of resource, name string, into runtime.Object) error {
	return c.try(ctx, into, func() *rest.Request { return c.api(of).Get().Resource(string(of)).Name(name) })
}

func (c *client) create(ctx context.Context, of resource, o, into runtime.Object) error {
	return c.try(ctx, into, func() *rest.Request { return c.api(of).Post().Resource(string(of)).Body(o) })
}

func (c *client) update(ctx context.Context, of resource, name string, o, into runtime.Object) error {
	return c.try(ctx, into, func() *rest.Request { return c.api(of).Put().Resource(string(of)).Name(name).Body(o) })
}

// remove deletes an object, if its version is still the one given, "" for any.
// A missing object is not an error.
func (c *client) remove(ctx context.Context, of resource, name, ifVersion string) error {
	options := &metav1.DeleteOptions{}
	if ifVersion != "" {
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &ifVersion}
	}
	err := c.try(ctx, nil, func() *rest.Request { return c.api(of).Delete().Resource(string(of)).Name(name).Body(options) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// secretsWith lists the Secrets that have labels.
func (c *client) secretsWith(ctx context.Context, selector string) ([]core.Secret, error) {
	var list core.SecretList
	err := c.try(ctx, &list, func() *rest.Request {
		return c.core.Get().Resource(string(secrets)).Param("labelSelector", selector)
	})
	return list.Items, err
}

// objectNames is as much of an object as lists of names need.
type objectNames struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// metadataOnly asks for lists without what the objects hold.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// namesWith lists what is known of Secrets that have labels, without their
// data.
func (c *client) namesWith(ctx context.Context, selector string) ([]objectNames, error) {
	var list struct {
		Items []objectNames `json:"items"`
	}
	err := c.tryRaw(ctx, &list, func() *rest.Request {
		return c.core.Get().Resource(string(secrets)).Param("labelSelector", selector).SetHeader("Accept", metadataOnly)
	})
	return list.Items, err
}

// try sends a request until it works or is refused for good.
func (c *client) try(ctx context.Context, into runtime.Object, request func() *rest.Request) error {
	return c.repeat(ctx, func() error {
		result := request().Namespace(c.namespace).MaxRetries(0).Do(ctx)
		if into == nil {
			return result.Error()
		}
		return result.Into(into)
	})
}

// tryRaw is try for raw answers.
func (c *client) tryRaw(ctx context.Context, into any, request func() *rest.Request) error {
	return c.repeat(ctx, func() error {
		text, err := request().Namespace(c.namespace).MaxRetries(0).DoRaw(ctx)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	})
}

func (c *client) repeat(ctx context.Context, once func() error) error {
	pause := c.tries.first
	for attempt := 1; ; attempt++ {
		err := once()
		if err == nil || attempt >= c.tries.attempts || !passing(err) || ctx.Err() != nil {
			return err
		}
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			pause = max(pause, min(time.Duration(seconds)*time.Second, c.tries.most))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
		pause = min(2*pause, c.tries.most)
	}
}

// passing reports whether an error may not occur the next time: the server is
// overloaded or starting, or the connection broke.
func passing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		var broken *net.OpError
		return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
	switch status.Status().Code {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// conflicting turns the server's error for a broken condition into ErrConflict.
func conflicting(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return object.ErrConflict
	}
	return err
}

// explainError adds to an error what people can do about it.
func (c *client) explainError(err error) error {
	switch {
	case err == nil, errors.Is(err, object.ErrConflict):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not know who asks (401 %w): check token, client_certificate or exec, or the kubeconfig's user", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; a state needs the verbs get, list, create, update and delete for secrets, and get, create, update and delete for leases of coordination.k8s.io, in the namespace %q", err, c.namespace)
	}
	return err
}
