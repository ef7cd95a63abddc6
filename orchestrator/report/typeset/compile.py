# Sets report.typ of the working folder as report.pdf. Arguments: the folder of Typst's wheel.
import resource
import sys

MEMORY, SECONDS, FILE = 2 << 30, 240, 512 << 20

resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path.insert(0, sys.argv[1])
try:
    import typst
except ImportError as e:
    print(e, file=sys.stderr)
    sys.exit(3)
try:
    typst.compile(
        "report.typ",
        output="report.pdf",
        root=".",
        ignore_system_fonts=True,
        pdf_standards=["ua-1"],
        package_path="packages",
        package_cache_path="packages",
    )
except typst.TypstError as e:
    sys.exit(". ".join([e.message, *e.hints]))
except BaseException as e:  # a panic of Typst is not an Exception
    sys.exit(f"{type(e).__name__}: {e}")
