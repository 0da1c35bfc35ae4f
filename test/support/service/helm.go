// Renders a chart as `helm template` does: Go's own text/template with the functions of sprig, and
// those that Helm adds. Standard input is JSON: the chart's directory, all values, so that their
// numbers are floats as in Helm, and the name and namespace of the release. Standard output is the
// manifests, or the message of `fail` and `required` on standard error.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type object = map[string]interface{}

type files struct{ dir string }

func (f files) Get(name string) string {
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	must(err)
	return string(data)
}

func main() {
	var given struct {
		Dir       string
		Values    object
		Name      string
		Namespace string
	}
	must(json.NewDecoder(os.Stdin).Decode(&given))
	chart := object{}
	must(yaml.Unmarshal([]byte(files{given.Dir}.Get("Chart.yaml")), &chart))
	root := object{
		"Values":  given.Values,
		"Chart":   object{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": object{"Name": given.Name, "Namespace": given.Namespace, "Service": "Helm"},
		"Files":   files{given.Dir},
	}
	names, err := filepath.Glob(filepath.Join(given.Dir, "templates", "*"))
	must(err)
	sort.Strings(names)
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	for _, name := range names {
		data, err := os.ReadFile(name)
		must(err)
		_, err = all.New(filepath.Base(name)).Parse(string(data))
		must(err)
	}
	for _, name := range names {
		var out bytes.Buffer
		must(all.ExecuteTemplate(&out, filepath.Base(name), root))
		if strings.HasSuffix(name, ".yaml") {
			fmt.Printf("---\n%s\n", out.String())
		}
	}
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	// Helm takes these away: a chart must not read the environment
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, data interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["toYaml"] = func(value interface{}) (string, error) {
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, fmt.Errorf("%s", message)
		}
		return value, nil
	}
	return known
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
