package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/googleapis/gax-go/v2/apierror"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Kind is what callers tell errors apart by.
type Kind uint8

const (
	Other     Kind = iota
	NotFound       // there is no such object
	Exists         // an object of this name is there already
	Conflict       // another operation is under way, or the etag is stale: wait and try again
	Busy           // too many calls or operations, or the service is away for a moment
	Quota          // the project may not have so much
	StockOut       // the zone has none left
	Ambiguous      // the call may or may not have had an effect
	Forbidden      // a role is missing
	Unknown        // the credentials are not taken, or give no token any more
	Disabled       // the API is not enabled
	NoProject      // there is no such project
	InUse          // something else uses the object

	NoQuotaProject // the credentials do not name a project that calls are counted in
	NoBilling      // the project has no billing account
	NoLocation     // the zone or region does not exist, or is closed to the project
)

// missingProject is how GKE and Service Usage report one.
var missingProject = pattern.New(`(?i)\bproject '[^']+' not found or (permission denied|deleted)`)

// Error is one of Google's errors, for people.
type Error struct {
	Summary string // at most eight words
	Detail  string // what Google said, and what to do
	Kind    Kind
	Reason  string // Google's word for it, such as QUOTA_EXCEEDED; "" for none
	Request string // the id of the request, which Google's support asks for; "" for none
	Late    bool   // the call got no answer within its limit
	Silent  bool   // and the service has never answered
	Err     error

	message      string // Google's words
	precondition bool   // the code is FAILED_PRECONDITION
	limited      bool   // the details have a QuotaFailure
}

func (e *Error) Error() string { return e.Summary + ": " + e.Detail }
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of an error of a call or an operation.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Other
}

// requestID is how GKE names its requests.
var requestID = pattern.New(`\b0x[0-9a-f]{6,}\b`)

// Explain makes an Error of what a client returned; nil stays nil.
func Explain(err error) error {
	var already *Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	if late := new(lateError); errors.As(err, &late) {
		return late.explain(err)
	}
	if refused := new(oauth2.RetrieveError); errors.As(err, &refused) { // renewing the token failed
		return tokenError("the credentials", err)
	}
	e := &Error{Err: err}
	message, code := parts(err, e)
	e.message, e.precondition = message, code == codes.FailedPrecondition
	e.Kind = classify(code, e.Reason, message)
	if e.limited && e.Kind == Busy && !limitsRate("", message) && e.Reason != "RATE_LIMIT_EXCEEDED" {
		e.Kind = Quota
	}
	e.phrase(message)
	return e
}

// parts takes an error of gRPC or HTTP apart.
func parts(err error, e *Error) (message string, code codes.Code) {
	message, code = err.Error(), codes.Unknown
	var web *googleapi.Error
	if errors.As(err, &web) {
		message, code = web.Message, fromHTTP(web.Code)
		if message == "" {
			message = strings.TrimSpace(web.Body)
		}
		if len(web.Errors) > 0 {
			e.Reason = web.Errors[0].Reason
		}
		e.Request = web.Header.Get("X-Request-Id")
		e.detail(web.Details)
		if web.Code == http.StatusConflict && strings.Contains(web.Body, `"ABORTED"`) {
			code = codes.Aborted // HTTP has one word for both
		}
		if web.Code == http.StatusBadRequest && strings.Contains(web.Body, `"FAILED_PRECONDITION"`) {
			code = codes.FailedPrecondition // so here
		}
	}
	if api, ok := apierror.FromError(err); ok {
		if s := api.GRPCStatus(); s != nil && web == nil { // of HTTP's 409 the library makes Aborted
			message, code = s.Message(), s.Code()
		}
		if reason := api.Reason(); reason != "" {
			e.Reason = reason
		}
		e.limited = e.limited || api.Details().QuotaFailure != nil
		if info := api.Details().RequestInfo; info != nil {
			e.Request = info.GetRequestId()
		}
	} else if s, ok := status.FromError(err); ok {
		message, code = s.Message(), s.Code()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case web == nil && code == codes.Unknown && !errors.Is(err, context.Canceled):
		code = codes.Unavailable // the connection broke
	}
	if e.Request == "" {
		e.Request = requestID.FindString(message)
	}
	return message, code
}

// detail takes reason and request out of the details of an answer over HTTP. The
// client's own reading gives up where the older list of errors is beside them.
func (e *Error) detail(details []any) {
	for _, d := range details {
		fields, _ := d.(map[string]any)
		kind, _ := fields["@type"].(string)
		switch kind[strings.LastIndexByte(kind, '.')+1:] {
		case "ErrorInfo":
			if reason, _ := fields["reason"].(string); reason != "" {
				e.Reason = reason
			}
		case "QuotaFailure":
			e.limited = true
		case "RequestInfo":
			if id, _ := fields["requestId"].(string); id != "" {
				e.Request = id
			}
		}
	}
}

func fromHTTP(n int) codes.Code {
	switch n {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.AlreadyExists
	case http.StatusPreconditionFailed:
		return codes.Aborted
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable, http.StatusBadGateway:
		return codes.Unavailable
	case http.StatusGatewayTimeout:
		return codes.DeadlineExceeded
	case http.StatusInternalServerError:
		return codes.Internal
	}
	return codes.Unknown
}

// stockOuts are how zones say that they have none left.
var stockOuts = []string{"gce_stockout", "zone_resource_pool_exhausted", "does not have enough resources available"}

// quotas are how projects say that they may not have so much. GKE says it as
// "permission denied".
var quotas = []string{"quota_exceeded", "insufficient regional quota", "insufficient project quota", "gce_quota_exceeded", "quotaexceeded", "quota exceeded", "exceeded quota"}

// computeQuota is how compute says it: Quota 'NVIDIA_L4_GPUS' exceeded.
var computeQuota = pattern.New(`(?i)\bquota '[^']+' exceeded`)

// spentQuota is how Filestore reports it: Quota limit 'EnterpriseStorageGibPerRegion' has been exceeded.
var spentQuota = pattern.New(`(?i)\bquota limit '[^']+' has been exceeded`)

// limitsRate reports whether an error is about the number of calls, and not about the size of objects.
func limitsRate(reason, message string) bool {
	text := strings.ToLower(reason + " " + message)
	words := []string{"rate_limit_exceeded", "ratelimitexceeded", "rate limit exceeded", "quota metric",
		"concurrent operations quota", "too many operations"}
	return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(text, s) })
}

// Classify is the kind of what a finished operation says.
func Classify(reason, message string) Kind { return classify(codes.Unknown, reason, message) }

func classify(code codes.Code, reason, message string) Kind {
	text := strings.ToLower(reason + " " + message)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has(stockOuts...):
		return StockOut
	case spentQuota.MatchString(message) && reason != "RATE_LIMIT_EXCEEDED": // over HTTP the reason is rateLimitExceeded
		return Quota
	case limitsRate(reason, message):
		return Busy
	case has("requires a quota project"):
		return NoQuotaProject
	case has("billing_disabled", "requires billing to be enabled", "billing account for the owning project"):
		return NoBilling
	case has("permission denied on 'locations/"):
		return NoLocation
	case code != codes.ResourceExhausted && (has(quotas...) || computeQuota.MatchString(message)):
		return Quota
	case has("cluster_already_has_operation", "incompatible operation", "currently being created, deleted, updated or repaired", "resourcenotready", "try again once it is done", "fingerprint mismatch"):
		return Conflict
	case has("service_disabled", "accessnotconfigured", "it is disabled"):
		return Disabled
	case has("consumer_invalid", "project_deleted", "permission denied on resource project") || missingProject.MatchString(message) ||
		code == codes.NotFound && has("failed to find project", "the resource 'projects/") && !has("/zones/", "/global/", "/regions/"):
		return NoProject
	case has("resourceinusebyanotherresource", "is already being used by"):
		return InUse
	}
	switch code {
	case codes.NotFound:
		return NotFound
	case codes.AlreadyExists:
		return Exists
	case codes.Aborted:
		return Conflict
	case codes.ResourceExhausted:
		return Busy
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal:
		return Ambiguous
	case codes.PermissionDenied:
		return Forbidden
	case codes.Unauthenticated:
		return Unknown
	}
	return Other
}

// disabledService finds a service and its project in Google's words.
var disabledService = pattern.New(`/apis/api/([a-z]+\.googleapis\.com)/overview\?project=([\w-]+(?:[.:][\w-]+)*)`)

// permission finds one in Google's words, such as compute.disks.create.
var permission = pattern.New(`\b(compute|container|file|iam|serviceusage)\.([a-z]\w+)\.([a-z]\w+)\b`)

// roles have the permissions whose names begin so; the first that fits is the one.
var roles = []struct{ permission, role string }{
	{"compute.disks.", "roles/compute.storageAdmin"},
	{"compute.snapshots.", "roles/compute.storageAdmin"},
	{"compute.firewalls.", "roles/compute.securityAdmin"},
	{"compute.networks.updatePolicy", "roles/compute.securityAdmin"},
	{"compute.networks.use", "roles/compute.networkUser on the project of the network"},
	{"compute.subnetworks.use", "roles/compute.networkUser on the project of the network"},
	{"compute.", "roles/compute.viewer"},
	{"container.", "roles/container.admin"},
	{"file.", "roles/file.editor"},
	{"iam.serviceAccounts.actAs", "roles/iam.serviceAccountUser on the nodes' service account"},
	{"serviceusage.services.use", "roles/serviceusage.serviceUsageConsumer"},
	{"serviceusage.", "roles/serviceusage.serviceUsageAdmin"},
}

// grant says which role is missing.
func grant(message string) string {
	for _, found := range permission.FindAllString(message, -1) {
		for _, r := range roles {
			if strings.HasPrefix(found, r.permission) && !strings.Contains(found, ".googleapis.") {
				return fmt.Sprintf("Grant the account the role %s, or another that has %s.", r.role, found)
			}
		}
	}
	return "Grant the account the role that has this permission: roles/container.admin for clusters, with roles/iam.serviceAccountUser on the nodes' service account; roles/compute.storageAdmin for disks and snapshots; roles/compute.securityAdmin for firewall rules; roles/file.editor for Filestore."
}

// phrase writes summary and detail.
func (e *Error) phrase(message string) {
	what := map[Kind][2]string{
		NotFound:  {"Not found", "Look at the name, the place and the project."},
		Exists:    {"Already exists", "Import it to manage it here."},
		Conflict:  {"Another operation is under way", "Stoke waited for it, and it did not end in time; apply again."},
		Busy:      {"Too many calls", "Stoke repeated the request, and Google still refuses it; apply again later."},
		Quota:     {"Quota of the project is exhausted", "Ask for more at https://console.cloud.google.com/iam-admin/quotas, or declare less. No role helps here."},
		StockOut:  {"The zone has none left", "Name other zones or machine types, declare a fallback or a reservation, or apply again later."},
		Ambiguous: {"Google did not answer", "Look at the network; apply again: the next apply finds the operation."},
		Forbidden: {"Permission denied", grant(message)},
		Unknown:   {"Google does not take the credentials", "Log in again with `gcloud auth application-default login`, or give another key; a clock that is wrong has the same effect."},
		Disabled:  {"API is not enabled", "Enable it, such as with `gcloud services enable container.googleapis.com compute.googleapis.com file.googleapis.com`, and wait a minute."},
		NoProject: {"No such project", "Correct project in the block provider \"gke\": it is the id, not the name, and the account has to see it."},
		InUse:     {"Still in use", "Detach it first."},
		Other:     {"Google refuses this", ""},
		NoQuotaProject: {"No quota project", "Set quota_project in the block provider \"gke\", " +
			"or run `gcloud auth application-default set-quota-project PROJECT`: " +
			"calls with a person's credentials are counted in a project."},
		NoBilling: {"Project has no billing account", "Link one at https://console.cloud.google.com/billing/linkedaccount, " +
			"and wait a few minutes."},
		NoLocation: {"No such location", "Correct zone, region or location; a new zone may also be closed to the project."},
	}[e.Kind]
	if found := disabledService.FindStringSubmatch(message); e.Kind == Disabled && found != nil {
		what[1] = fmt.Sprintf("Enable it with `gcloud services enable %s --project %s`, or have an apply do it: enable_services = true in the block provider \"gke\".", found[1], found[2])
	}
	e.Summary = what[0]
	detail := strings.TrimSuffix(strings.TrimSpace(message), ".") + "."
	if e.Reason != "" && !strings.Contains(message, e.Reason) {
		detail += fmt.Sprintf(" (Reason: %s.)", e.Reason)
	}
	if e.Request != "" && !strings.Contains(message, e.Request) {
		detail += fmt.Sprintf(" (Request: %s.)", e.Request)
	}
	if what[1] != "" {
		detail += " " + what[1]
	}
	e.Detail = detail
}
