package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The table of settings in README.md has every flag of serve, by its variable, with the default that the program has.
func TestReadmeHasEverySettingOfServe(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := settings(string(text))
	parser, err := kong.New(&commandLine{}, kong.DefaultEnvars("DOORTAB"), kong.Bind(&console{}))
	if err != nil {
		t.Fatal(err)
	}
	serve := parser.Model.Children[slices.IndexFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == "serve" })]
	for _, flag := range serve.Flags {
		if len(flag.Envs) != 1 {
			t.Errorf("--%s has the variables %v", flag.Name, flag.Envs)
			continue
		}
		is, found := documented[flag.Envs[0]]
		if !found {
			t.Errorf("README.md lacks %s", flag.Envs[0])
		} else if is != flag.Default {
			t.Errorf("README.md gives %s the default %q, the program %q", flag.Envs[0], is, flag.Default)
		}
		delete(documented, flag.Envs[0])
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		t.Errorf("README.md has %s, which is no setting of serve", name)
	}
}

var settingsRow = regexp.MustCompile("(?m)^\\| (`DOORTAB_[^|]*) \\| [^|]* \\| ([^|]*) \\|")

// settings reads variables and defaults, one for each or one for all, from the rows of a table.
func settings(text string) map[string]string {
	inWords := map[string]string{
		"–": "", "none": "", "host name and HTTP port": "", "90 days": "2160h", "for ever": "0s", "72 h": "72h",
	}
	found := map[string]string{}
	for _, row := range settingsRow.FindAllStringSubmatch(text, -1) {
		defaults := strings.Split(row[2], ", ")
		for i, name := range strings.Split(row[1], ", ") {
			name = strings.Replace(strings.Trim(name, "`"), "…", "DOORTAB_KEEP", 1)
			is := strings.Trim(defaults[min(i, len(defaults)-1)], "`")
			if word, known := inWords[is]; known {
				is = word
			}
			found[name] = is
		}
	}
	return found
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ flag, says, lacks string }{
		"what was built":              {"--version", " go1.", "Usage"},
		"only a flag, not a variable": {"--help", "--version", "$DOORTAB_VERSION"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), []string{c.flag}, &stdout, &stderr)
			said := stdout.String()
			if status != 0 || !strings.Contains(said, c.says) || strings.Contains(said, c.lacks) {
				t.Errorf("status %d, %q %q", status, said, stderr.String())
			}
		})
	}
}
