# What "checked" means is written here once; .ci/run calls these targets and nothing else.

# Everything from Debian 12 that building, testing and the camera lab need. A Swift 6.3 toolchain comes on top.
LIBRARIES = libwebsockets-dev libev-dev libvpx-dev libv4l-dev libyuv-dev libturbojpeg0-dev libpng-dev zlib1g-dev pkg-config \
    libxcb1-dev libxcb-composite0-dev libxcb-damage0-dev libxcb-randr0-dev libxcb-shm0-dev libxcb-xfixes0-dev \
    libsdl2-dev
# What the toolchain itself links against and runs on (swift.org, "Linux installation", Debian 12).
TOOLCHAIN = binutils libc6-dev libcurl4 libedit2 libgcc-12-dev libncurses6 libsqlite3-0 libstdc++-12-dev libxml2 tzdata
TOOLS = git make gcc libc6-dev linux-libc-dev iproute2 ffmpeg vpx-tools v4l-utils python3 shellcheck xvfb xfonts-base xdotool
LAB = qemu-system-x86 busybox-static kmod cpio xz-utils procps
PACKAGES = $(LIBRARIES) $(TOOLCHAIN) $(TOOLS) $(LAB)

SUDO = $(if $(filter 0,$(shell id -u)),,sudo)

PREFIX = /usr/local
PROGRAMS = room-client room-server room-view

.PHONY: all deps build build-ahead release programs install lint check symbol-graphs api api-check test check-programs test-values test-address test-thread lab demo bench bench-network docs clean

all: build

deps:
	@missing=$$(for package in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'install ok installed' || echo $$package; done); \
	if [ -n "$$missing" ]; then \
	    $(SUDO) apt-get update && \
	    DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y --no-install-recommends $$missing; fi
	@swift --version 2>/dev/null | head -n 1 || \
	    { echo "There is no swift command: install a Swift 6.3 toolchain from swift.org." >&2; exit 1; }

build: deps
	swift build

# What users start, benchmarks and examples, optimized. Every import must be a declared dependency.
release: deps
	swift build -c release $(DECLARED)

# Only what users start.
programs: deps
	for program in $(PROGRAMS); do swift build -c release --product $$program || exit 1; done

# Programs with Swift's libraries inside, for machines that have no Swift toolchain: README.md, "On other machines".
install: deps
	for program in $(PROGRAMS); do \
	    swift build -c release --static-swift-stdlib --scratch-path .build-install --product $$program || exit 1; done
	$(if $(DESTDIR),,$(SUDO)) install -D --strip --target-directory=$(DESTDIR)$(PREFIX)/bin $(PROGRAMS:%=.build-install/release/%)

SCRIPTS = .ci/run Tests/CameraLab/run Tests/CameraLab/camera-lab Tests/CameraLab/*.sh Examples/check Examples/demo

DECLARED = --explicit-target-dependency-import-check error

# Format, scripts, and whether the mutations still fit.
lint: deps
	swift format lint --strict --recursive Package.swift Sources server Tests Examples
	shellcheck --severity=warning --external-sources --source-path=Tests/CameraLab $(SCRIPTS)
	Tests/Mutations/run --check

check: lint
	swift build --build-tests $(DECLARED)

# Tests of values, which know no threads, and use no memory unsafely but to prefetch it: a sanitizer has nothing to find. Those
# that play minutes of decisions would take a third of all tests' time under one.
VALUES = AdaptationTests ChartsTests RelayCoreTests TilesTests WordingTests
# Tests of code that runs on its caller's thread alone: none of it has anything that two threads share.
ONE_THREAD = MediaFilesTests RoomProtocolTests VP8CodecTests VideoProcessingTests
# The same, among others that do have threads.
ONE_THREAD_SUITES = ClientTests.DocumentedCommandTests ClientTests.SourceOptionTests ClientTests.SourceOptionsTests \
    SyntheticSourcesTests.BarcodeTests SyntheticSourcesTests.PictureTests

test: deps
	Tests/run
	Examples/check
	@echo "Left to 'make lab': cameras, which are tested against the kernel's own drivers in a small virtual machine."

# What the optimizer has made of the programs, and whether the examples do what they say.
check-programs: release
	.ci/lost-errors $(PROGRAMS:%=.build/release/%)
	.ci/large-copies .build/release/room-server
	Examples/check -c release

# No test needs them.
NO_TESTS = adaptation-bench encode-clip picture-bench MinimalPublisher MinimalSubscriber NoisePublisher MotionDetector \
    GrayscalePublisher PlanesToC

# Each kind of build has a folder of its own. Without debug information a build takes a tenth less work; the sanitizers'
# reports then name functions and no lines. What they run none of is not compiled either, and the programs, of which they test
# parts, are not optimized.
ADDRESS = --configuration release -Xswiftc -enable-testing --sanitize=address -Xswiftc -gnone --scratch-path .build-address \
    $(DECLARED)
THREAD = --sanitize=thread -Xswiftc -gnone --scratch-path .build-thread
NOT_ADDRESS = $(NO_TESTS) AdaptationSimulation $(VALUES)
FOR_ADDRESS = ROOM_LEAVE_OUT="$(NOT_ADDRESS)" ROOM_UNOPTIMIZED="$(PROGRAMS)"
NOT_THREAD = $(NO_TESTS) $(VALUES) $(ONE_THREAD)

# Builds only what these tests need.
PLAIN = --configuration release -Xswiftc -enable-testing -Xswiftc -gnone --scratch-path .build-values \
    --product roomPackageTests
NOT_PLAIN = $(filter-out $(VALUES),$(notdir $(wildcard Tests/*Tests)))

test-values: deps
	ROOM_LEAVE_OUT="$(NOT_PLAIN)" Tests/run $(PLAIN)

# All other tests, with what the optimizer makes of the code. Those that start programs start the ones that users run, without
# a sanitizer: they and `.ci/lost-errors` show faults of the compiler that the sanitizer's own code would hide.
test-address: release
	ROOM_TEST_PROGRAMS=$$(realpath .build/release) $(FOR_ADDRESS) Tests/run $(ADDRESS)

# Tests that start programs are left out: they take seconds, and show nothing that those in one process do not. Memory that
# grows shows here, since AddressSanitizer keeps freed memory.
test-thread: deps
	TSAN_OPTIONS="suppressions=$(CURDIR)/Tests/ThreadSanitizer.supp" ROOM_LEAVE_OUT="$(NOT_THREAD)" \
	    Tests/run $(THREAD) --in-process $(ONE_THREAD_SUITES:%=--skip ^%/)

# What the tests in other kinds of builds need, built before they run.
build-ahead: deps
	$(FOR_ADDRESS) swift build --build-tests $(ADDRESS)
	ROOM_LEAVE_OUT="$(NOT_PLAIN)" swift build $(PLAIN)
	ROOM_LEAVE_OUT="$(NOT_THREAD)" swift build --build-tests $(THREAD)

# The guest is slow, so what its tests run is optimized, too.
lab: release
	ROOM_BUILD_DIR=.build/release ROOM_TESTS_OPTIONS="$(ADDRESS)" $(FOR_ADDRESS) Tests/CameraLab/run

demo: programs
	Examples/demo

bench: release
	Benchmarks/run

# CASES="step rfc-5.1 --where up,down --runs 3": the options of Benchmarks/network/run. Needs root.
CASES = --all
bench-network: release
	Benchmarks/network/check
	Benchmarks/network/run $(CASES)

# What users of the library see: RoomKit, and what it re-exports.
API = RoomKit Adaptation Capture MediaCore ScreenCapture SyntheticSources Threading V4L2Capture RelayServer

# Without the tests, which it would want to be built, too.
symbol-graphs: release
	ROOM_LEAVE_OUT="$(notdir $(wildcard Tests/*Tests))" swift package -c release dump-symbol-graph \
	    --minimum-access-level public --skip-synthesized-members > /dev/null

# The public API, a declaration a line: a change of it shows in the diff of this file.
api: symbol-graphs
	.ci/public-api $(foreach module,$(API),.build/*/symbolgraph/$(module)*.symbols.json) > docs/api.txt

api-check: api
	@git diff --exit-code -- docs/api.txt || { echo "The public API changed: commit what make api wrote." >&2; exit 1; }

# The pages of RoomKit and what it re-exports as a website in .build/documentation; docc comes with the toolchain.
docs: symbol-graphs
	rm -rf .build/documentation .build/symbol-graphs && mkdir -p .build/symbol-graphs
	for module in $(API); do \
	    find .build/*/symbolgraph -name "$$module.symbols.json" -o -name "$$module@*.symbols.json"; \
	done | xargs cp -t .build/symbol-graphs
	docc convert Sources/RoomKit/RoomKit.docc --additional-symbol-graph-dir .build/symbol-graphs \
	    --output-path .build/documentation --warnings-as-errors

clean:
	rm -rf .build .build-install .build-release .build-thread .build-address .build-values demo-output
