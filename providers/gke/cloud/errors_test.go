package cloud

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestExplain: errors in the words of container v1 and compute v1 keep their reason
// and the request's id, and say what to do.
func TestExplain(t *testing.T) {
	rpc := func(code codes.Code, message, reason string) error {
		s, err := status.New(code, message).WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "container.googleapis.com"}, &errdetails.RequestInfo{RequestId: "0x1234567890abcdef"})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	web := func(code int, message, reason string) error {
		return &googleapi.Error{Code: code, Message: message, Header: http.Header{"X-Request-Id": {"0xfeed12345"}}, Errors: []googleapi.ErrorItem{{Reason: reason, Message: message}}}
	}
	for _, test := range []struct {
		name    string
		err     error
		kind    Kind
		says    []string
		request string
	}{
		{"quota of GKE", rpc(codes.PermissionDenied, `Insufficient regional quota to satisfy request: resource "NVIDIA_L4_GPUS": request requires '4.0' and is short '4.0'.`, ""), Quota, []string{"No role helps", "iam-admin/quotas"}, "0x1234567890abcdef"},
		{"quota of compute", web(http.StatusForbidden, "Quota 'SSD_TOTAL_GB' exceeded.  Limit: 500.0 in region us-central1.", "quotaExceeded"), Quota, []string{"iam-admin/quotas"}, "0xfeed12345"},
		{"role of GKE", rpc(codes.PermissionDenied, `Required "container.clusters.create" permission(s) for "projects/p".`, "IAM_PERMISSION_DENIED"), Forbidden, []string{"IAM_PERMISSION_DENIED", "roles/container.admin"}, "0x1234567890abcdef"},
		{"role of compute", web(http.StatusForbidden, "Required 'compute.disks.create' permission for 'projects/p'", "forbidden"), Forbidden, []string{"role roles/compute.storageAdmin", "compute.disks.create"}, "0xfeed12345"},
		{"role of networks", web(http.StatusForbidden, "Required 'compute.networks.updatePolicy' permission for 'projects/p/global/networks/default'", "forbidden"), Forbidden, []string{"roles/compute.securityAdmin"}, "0xfeed12345"},
		{"role of Filestore", web(http.StatusForbidden, "Permission 'file.instances.create' denied on resource 'projects/p/locations/z/instances/i' (service file.googleapis.com).", "forbidden"), Forbidden, []string{"roles/file.editor"}, "0xfeed12345"},
		{"role for the nodes", rpc(codes.PermissionDenied, `The user does not have access to service account "n". Ask a project owner to grant you iam.serviceAccounts.actAs.`, ""), Forbidden, []string{"roles/iam.serviceAccountUser on the nodes'"}, "0x1234567890abcdef"},
		{"some role", web(http.StatusForbidden, "Not for you at compute.googleapis.com.", "forbidden"), Forbidden, []string{"Grant the account the role", "roles/file.editor", "roles/compute.securityAdmin"}, "0xfeed12345"},
		{"disabled", rpc(codes.PermissionDenied, "Kubernetes Engine API has not been used in project 1 before or it is disabled.", "SERVICE_DISABLED"), Disabled, []string{"SERVICE_DISABLED", "gcloud services enable"}, "0x1234567890abcdef"},
		{"disabled for a project by its name", rpc(codes.PermissionDenied, "It is disabled. Enable it by visiting https://console.developers.google.com/apis/api/file.googleapis.com/overview?project=my-project then retry.", "SERVICE_DISABLED"), Disabled, []string{"gcloud services enable file.googleapis.com --project my-project`"}, "0x1234567890abcdef"},
		{"disabled over HTTP", web(http.StatusForbidden, "Access Not Configured.", "accessNotConfigured"), Disabled, []string{"gcloud services enable"}, "0xfeed12345"},
		{"an operation of Google's", rpc(codes.FailedPrecondition, "Cluster is currently being created, deleted, updated or repaired and cannot be updated.", ""), Conflict, nil, "0x1234567890abcdef"},
		{"another operation", rpc(codes.FailedPrecondition, "Cluster is running incompatible operation operation-1.", "CLUSTER_ALREADY_HAS_OPERATION"), Conflict, []string{"CLUSTER_ALREADY_HAS_OPERATION"}, "0x1234567890abcdef"},
		{"stale etag", rpc(codes.Aborted, "The etag is stale.", ""), Conflict, nil, "0x1234567890abcdef"},
		{"too many operations", rpc(codes.ResourceExhausted, `Too many operations: cluster "c" hits the concurrent operations quota 5, please try again later.`, ""), Busy, nil, "0x1234567890abcdef"},
		{"too many calls", web(http.StatusTooManyRequests, "Rate Limit Exceeded", "rateLimitExceeded"), Busy, nil, "0xfeed12345"},
		{"exists", rpc(codes.AlreadyExists, "Already exists: projects/p/zones/z/clusters/c.", ""), Exists, []string{"Import it"}, "0x1234567890abcdef"},
		{"missing", web(http.StatusNotFound, "The resource 'projects/p/zones/z/disks/d' was not found", "notFound"), NotFound, nil, "0xfeed12345"},
		{"in use", web(http.StatusBadRequest, "The disk resource 'd' is already being used by 'i'", "resourceInUseByAnotherResource"), InUse, []string{"Detach it"}, "0xfeed12345"},
		{"away", rpc(codes.Unavailable, "The service is currently unavailable.", ""), Ambiguous, []string{"apply again"}, "0x1234567890abcdef"},
		{"late", context.DeadlineExceeded, Ambiguous, nil, ""},
		{"broken connection", errors.New("read: connection reset by peer"), Ambiguous, nil, ""},
		{"quota of Filestore", web(http.StatusTooManyRequests, "Quota limit 'EnterpriseStorageGibPerRegion' has been exceeded. Limit: 3072 in region us-central1.", "rateLimitExceeded"), Quota, []string{"iam-admin/quotas"}, "0xfeed12345"},
		{"quota of Filestore by its reason", rpc(codes.ResourceExhausted, "Quota limit 'X' has been exceeded.", "RATE_LIMIT_EXCEEDED"), Busy, nil, "0x1234567890abcdef"},
		{"quota project", rpc(codes.PermissionDenied, "Your application is authenticating by using local Application Default Credentials. The file.googleapis.com API requires a quota project, which is not set by default.", "SERVICE_DISABLED"), NoQuotaProject, []string{"quota_project", "set-quota-project"}, "0x1234567890abcdef"},
		{"billing", rpc(codes.FailedPrecondition, "This API method requires billing to be enabled. Please enable billing on project #123.", ""), NoBilling, []string{"billing/linkedaccount"}, "0x1234567890abcdef"},
		{"place", rpc(codes.PermissionDenied, "Permission denied on 'locations/wonderland' (or it may not exist).", ""), NoLocation, []string{"Correct zone"}, "0x1234567890abcdef"},
		{"project", rpc(codes.PermissionDenied, "Project 'p' not found or permission denied.", ""), NoProject, []string{"Correct project"}, "0x1234567890abcdef"},
		{"project that is gone", rpc(codes.PermissionDenied, "Project 'p' not found or deleted.", ""), NoProject, []string{"Correct project"}, "0x1234567890abcdef"},
		{"late", &lateError{service: "Filestore API", argument: "file_endpoint", silent: true}, Ambiguous, []string{"Filestore API", "network", "file_endpoint"}, ""},
		{"expired token", rpc(codes.Unauthenticated, "Request had invalid authentication credentials.", "ACCESS_TOKEN_EXPIRED"), Unknown, []string{"ACCESS_TOKEN_EXPIRED", "Log in again"}, "0x1234567890abcdef"},
		{"nonsense", rpc(codes.InvalidArgument, "Machine type is unsupported.", ""), Other, nil, "0x1234567890abcdef"},
	} {
		err := Explain(test.err)
		var e *Error
		if !errors.As(err, &e) || e.Kind != test.kind || e.Request != test.request || !errors.Is(err, test.err) {
			t.Errorf("%s: %#v", test.name, err)
			continue
		}
		for _, s := range test.says {
			if !strings.Contains(e.Detail, s) {
				t.Errorf("%s: %q lacks %q", test.name, e.Detail, s)
			}
		}
		if test.request != "" && !strings.Contains(e.Detail, test.request) {
			t.Errorf("%s: %q lacks the request", test.name, e.Detail)
		}
		if n := len(strings.Fields(e.Summary)); n == 0 || n > 8 {
			t.Errorf("%s: the summary is %q", test.name, e.Summary)
		}
	}
	if Explain(nil) != nil {
		t.Error("no error is one")
	}
	stockOut := "Current errors: [GCE_STOCKOUT]: Instance 'i' creation failed: The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request."
	for message, want := range map[string]Kind{stockOut: StockOut, "Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 1.0": Quota, "GCE_QUOTA_EXCEEDED": Quota, "Quota limit 'HighScaleSSDStorageGibPerRegion' has been exceeded. Limit: 0 in region us-central1.": Quota, "nodes are unhealthy": Other} {
		if got := Classify("", message); got != want {
			t.Errorf("an operation that says %q is %v", message, got)
		}
	}
}

// TestAttempts: what is busy is asked again a bounded number of times, what had no
// answer is not sent again blindly, and what is refused is refused at once.
func TestAttempts(t *testing.T) {
	c := &Cloud{pace: Pace{First: time.Microsecond, Most: 4 * time.Microsecond}}
	busy, lost := status.Error(codes.ResourceExhausted, "Too many operations"), status.Error(codes.Unavailable, "away")
	no, under := status.Error(codes.InvalidArgument, "no"), status.Error(codes.FailedPrecondition, "incompatible operation operation-1")
	type attemptFunc func(context.Context, *Cloud, func(context.Context) (int, error)) (int, error)
	for _, test := range []struct {
		name  string
		make  attemptFunc
		err   error
		calls int
	}{
		{"read busy", Read[int], busy, again}, {"read lost", Read[int], lost, again}, {"read refused", Read[int], no, 1}, {"read in the way", Read[int], under, 1},
		{"change lost", Change[int], lost, 1}, {"change refused", Change[int], no, 1},
		{"repeat lost", Repeat[int], lost, again}, {"repeat refused", Repeat[int], no, 1},
	} {
		n := 0
		_, err := test.make(t.Context(), c, func(context.Context) (int, error) { n++; return 0, test.err })
		if n != test.calls || !errors.Is(err, test.err) {
			t.Errorf("%s: %d calls, %v", test.name, n, err)
		}
	}
	n := 0 // another operation is waited for as long as there is time
	if got, err := Change(t.Context(), c, func(context.Context) (int, error) {
		if n++; n <= 3*again {
			return 0, under
		}
		return 7, nil
	}); got != 7 || err != nil {
		t.Errorf("%d, %v after %d calls", got, err, n)
	}
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := Change(limited, c, func(context.Context) (int, error) { return 0, under }); KindOf(err) != Conflict {
		t.Errorf("at the end of the time: %v", err)
	}
	w := waits{pace: Pace{First: 100 * time.Microsecond, Most: 300 * time.Microsecond}}
	for range 6 {
		if err := w.pause(t.Context()); err != nil || w.next > w.pace.Most {
			t.Errorf("waits %v: %v", w.next, err)
		}
	}
}

// TestPassing: a precondition that fails is waited for while another operation holds the object, and is tried once more where none does.
func TestPassing(t *testing.T) {
	c := &Cloud{pace: Pace{First: time.Microsecond, Most: 4 * time.Microsecond}}
	under := status.Error(codes.FailedPrecondition, "The moon is in the wrong house.")
	web := &googleapi.Error{Code: http.StatusBadRequest, Message: "The moon.", Body: `{"error": {"status": "FAILED_PRECONDITION"}}`}
	for _, test := range []struct {
		name        string
		err         error
		held, calls int // how often it is held; calls until it is given up
		known       bool
	}{{"held", under, 20, 21, true}, {"held over HTTP", web, 20, 21, true}, {"free", under, 0, 2, true}, {"nobody knows", under, 20, 1, false}, {"another error", status.Error(codes.InvalidArgument, "no"), 20, 1, true}} {
		n, looks := 0, 0
		ctx := t.Context()
		if test.known {
			ctx = Holding(ctx, func(context.Context) (bool, error) { looks++; return looks <= test.held, nil })
		}
		_, err := Change(ctx, c, func(context.Context) (int, error) { n++; return 0, test.err })
		if n != test.calls || !errors.Is(err, test.err) {
			t.Errorf("%s: %d calls, not %d: %v", test.name, n, test.calls, err)
		}
	}
}

// TestMake: a create whose answer was lost is looked for before it is made again.
func TestMake(t *testing.T) {
	c := &Cloud{pace: Pace{First: time.Microsecond, Most: 4 * time.Microsecond}}
	lost := status.Error(codes.Unavailable, "away")
	for _, test := range []struct {
		name        string
		happened    bool
		calls       int
		there, fail bool
	}{{"it happened", true, 1, true, false}, {"it did not", false, 2, false, false}} {
		n := 0
		_, there, err := Make(t.Context(), c, func(context.Context) (int, error) {
			if n++; n == 1 {
				return 0, lost
			}
			return 1, nil
		}, func(context.Context) (bool, error) { return test.happened, nil })
		if n != test.calls || there != test.there || (err != nil) != test.fail {
			t.Errorf("%s: %d calls, there %v, %v", test.name, n, there, err)
		}
	}
}
