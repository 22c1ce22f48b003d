package dashboard

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assets embed.FS

// pages are the parsed templates, one set for each page.
type pages struct {
	all map[string]*template.Template
}

// parsePages parses the templates; their links begin with a folder.
func parsePages(folder string) (*pages, error) {
	p := &pages{all: make(map[string]*template.Template)}
	funcs := template.FuncMap{
		"base":  func() string { return folder },
		"cell":  func(cells map[string]value, key string) cellOf { return cellOf{key, cells[key]} },
		"query": url.QueryEscape,
	}
	base, err := template.New("layout.html").Funcs(funcs).ParseFS(templateFiles, "templates/layout.html")
	if err != nil {
		return nil, err
	}
	for _, page := range []string{"runs", "run", "workers", "worker", "compare", "cluster", "new", "apply", "problem"} {
		t, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if p.all[page], err = t.ParseFS(templateFiles, "templates/"+page+".html"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// cellOf is a value with the name that scripts find it by.
type cellOf struct {
	Key string
	value
}

// layout is what every page has.
type layout struct {
	Page  string // of the scripts, and of the navigation
	Title string
	Body  any
}

// show answers with a page.
func (s *Server) show(w http.ResponseWriter, status int, l layout) {
	var b bytes.Buffer
	if err := s.pages.all[l.Page].Execute(&b, l); err != nil {
		http.Error(w, "The page cannot be written: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes()) //nolint:errcheck // the browser has left
}

// fail answers with an error for people; scripts get its text.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, title, detail string) {
	if r.Header.Get("Sec-Fetch-Dest") == "empty" {
		http.Error(w, title+". "+cleanText(detail, longestText, true), status)
		return
	}
	s.show(w, status, layout{Page: "problem", Title: title, Body: cleanText(detail, longestText, true)})
}

// assetFiles serves the scripts and styles.
func assetFiles() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return http.FileServerFS(files)
}

// findRun returns the run that a request names, or answers with the reason why there is not one.
func (s *Server) findRun(w http.ResponseWriter, r *http.Request) (row, bool) {
	address := r.URL.Query().Get("run")
	one, ok, err := s.board.find(r.Context(), address)
	switch {
	case err != nil:
		s.fail(w, r, http.StatusBadGateway, "The runs cannot be listed", err.Error())
	case !ok:
		s.fail(w, r, http.StatusNotFound, "There is no such run", "The state has no run at "+name(address)+".")
	case one.run == nil && one.err != nil && !one.isGone():
		s.fail(w, r, http.StatusBadGateway, "The run cannot be read", one.err.Error())
	case one.run == nil:
		s.fail(w, r, http.StatusNotFound, "Nothing is left of the run",
			"The state has "+name(address)+", but its run is not there any longer, or has not begun.")
	default:
		return one, true
	}
	return row{}, false
}
