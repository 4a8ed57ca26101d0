// SPDX-License-Identifier: Apache-2.0
// conditions says how Argo Workflows and Katib judge objects by the expressions that their users give them, with the
// libraries that they use.
//
// Argo (workflow/executor/resource.go) parses an expression as a Kubernetes label selector, whose keys it looks up as
// GJSON paths. A resource has failed when any requirement of failureCondition holds, else it has succeeded when all of
// successCondition's do. Katib (pkg/controller.v1beta1/trial/util/job_util.go) takes an expression for a GJSON path; it
// holds where that leads to an object, or to an array that is not empty. It asks failureCondition first, too.
//
// From stdin it takes {"tool": "argo" or "katib", "successCondition": ..., "failureCondition": ..., "objects": [...]},
// and prints an array with "Succeeded", "Failed" or "Running" for each object.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/labels"
)

type question struct {
	Tool             string            `json:"tool"`
	SuccessCondition string            `json:"successCondition"`
	FailureCondition string            `json:"failureCondition"`
	Objects          []json.RawMessage `json:"objects"`
}

// judge holds what the expressions say of one object.
type judge struct {
	failed, succeeded func(object []byte) bool
}

func main() {
	if err := answer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	by, err := judgeOf(asked)
	if err != nil {
		return err
	}
	found := []string{}
	for _, object := range asked.Objects {
		switch {
		case by.failed(object):
			found = append(found, "Failed")
		case by.succeeded(object):
			found = append(found, "Succeeded")
		default:
			found = append(found, "Running")
		}
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func judgeOf(asked question) (judge, error) {
	switch asked.Tool {
	case "argo":
		failing, err := requirements(asked.FailureCondition)
		if err != nil {
			return judge{}, fmt.Errorf("failureCondition: %w", err)
		}
		succeeding, err := requirements(asked.SuccessCondition)
		if err != nil {
			return judge{}, fmt.Errorf("successCondition: %w", err)
		}
		holds := func(object []byte) func(labels.Requirement) bool {
			return func(one labels.Requirement) bool { return one.Matches(paths(object)) }
		}
		return judge{
			failed:    func(object []byte) bool { return slices.ContainsFunc(failing, holds(object)) },
			succeeded: func(object []byte) bool { return count(succeeding, holds(object)) == len(succeeding) },
		}, nil
	case "katib":
		return judge{failed: leadsSomewhere(asked.FailureCondition), succeeded: leadsSomewhere(asked.SuccessCondition)}, nil
	}
	return judge{}, fmt.Errorf("tool is argo or katib, not %q", asked.Tool)
}

func requirements(expression string) (labels.Requirements, error) {
	selector, err := labels.Parse(expression)
	if err != nil {
		return nil, err
	}
	found, _ := selector.Requirements()
	return found, nil
}

func count(all labels.Requirements, holds func(labels.Requirement) bool) int {
	number := 0
	for _, one := range all {
		if holds(one) {
			number++
		}
	}
	return number
}

func leadsSomewhere(path string) func([]byte) bool {
	return func(object []byte) bool {
		found := gjson.GetBytes(object, path)
		return found.IsObject() || found.IsArray() && len(found.Array()) > 0
	}
}

// paths is an object as a set of labels, by the paths into it.
type paths []byte

func (object paths) Has(path string) bool { return gjson.GetBytes(object, path).Exists() }

func (object paths) Get(path string) string { return gjson.GetBytes(object, path).String() }

func (object paths) Lookup(path string) (string, bool) { return object.Get(path), object.Has(path) }
