package gcptest

import (
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stokehq/stoke/runtime/pattern"
)

// maxLabels is how many labels an object may have, those of Google's included.
const maxLabels = 64

// The syntax of labels, which is that of all services: letters without capitals,
// of any script.
// https://cloud.google.com/resource-manager/docs/creating-managing-labels#requirements
var (
	labelName  = pattern.New(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = pattern.New(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
)

// wrongLabels returns the fault of labels in the words of compute v1, "" if
// there is none: googleapis/gax-nodejs#1288 (names) and #1375 (values).
func wrongLabels(labels map[string]string) string {
	if len(labels) > maxLabels {
		return fmt.Sprintf("The number of labels %d exceeds the limit of %d labels.", len(labels), maxLabels)
	}
	names := make([]string, 0, len(labels))
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	const may = "can only contain lowercase letters, numeric characters, underscores and dashes."
	for _, name := range names {
		switch {
		case !labelName.MatchString(name):
			return fmt.Sprintf("Label key '%s' violates format constraints. The key must start with a lowercase character, %s The key can be at most 63 characters long. International characters are allowed.", name, may)
		case !labelValue.MatchString(labels[name]):
			return fmt.Sprintf("Label value '%s' violates format constraints. The value %s The value can be at most 63 characters long. International characters are allowed.", labels[name], may)
		}
	}
	return ""
}

// checkComputeLabels refuses labels as compute v1 does; field is "resource.labels"
// where an object is made, and "labels" where they are set.
func checkComputeLabels(field string, labels map[string]string) error {
	if wrong := wrongLabels(labels); wrong != "" {
		return computeInvalid("Invalid value for field '%s': ''. %s", field, wrong)
	}
	return nil
}

// checkLabels refuses labels of container v1 and file v1.
func checkLabels(labels map[string]string) error {
	if wrong := wrongLabels(labels); wrong != "" {
		return status.Error(codes.InvalidArgument, "Invalid resource labels: "+wrong)
	}
	return nil
}
