package contract

// Environment returns the environment of a driver process: the path of programs
// and the language of messages, so that no run depends on a shell's settings.
// lookup is [os.LookupEnv].
//
// Python would write compiled modules into the driver's folder, and the driver
// would be another one by having run.
func Environment(lookup func(string) (string, bool)) []string {
	env := []string{"LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"}
	for _, k := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := lookup(k); ok {
			env = append(env, k+"="+v)
		}
	}
	return env
}
