package contract

// Environment returns the environment of a driver process: the path of programs
// and the language of messages, so that no run depends on a shell's settings.
// lookup is [os.LookupEnv].
//
// Python would write compiled modules beside the sources, and execute them in the
// sources' place without a look at more than a time and a size: a driver would
// change by being run, and its digest would not say what runs.
func Environment(lookup func(string) (string, bool)) []string {
	env := []string{"LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PYTHONPYCACHEPREFIX=/nonexistent"}
	for _, k := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := lookup(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}
