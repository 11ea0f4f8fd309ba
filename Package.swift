// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .treatAllWarnings(as: .error),
]

/// What everything outside the tests is built with. (The macros of Swift Testing trip over strict memory safety.)
let strict = settings + [.strictMemorySafety()]

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

/// A library of ours under `Sources/`, with its tests in `Tests/<name>Tests`.
func library(
    _ name: String,
    path: String? = nil,
    _ dependencies: [Target.Dependency],
    testedWith testDependencies: [Target.Dependency] = []
) -> [Target] {
    [
        .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict),
        .testTarget(
            name: "\(name)Tests",
            dependencies: [.byName(name: name), "TestTools"] + dependencies + testDependencies,
            swiftSettings: settings
        ),
    ]
}

/// What tests of every floor use.
let tools: [Target] = [
    .target(
        name: "TestTools",
        dependencies: ["MediaCore", "Threading"],
        path: "Tests/TestTools",
        swiftSettings: settings
    ),
    // Flows of the real decisions over a simulated link; the benchmark plays traces over it.
    .target(
        name: "AdaptationSimulation",
        dependencies: ["Adaptation", "RoomProtocol", "MediaCore"],
        path: "Tests/AdaptationSimulation",
        swiftSettings: settings
    ),
    .executableTarget(
        name: "adaptation-bench",
        dependencies: ["AdaptationSimulation", "Adaptation", "MediaCore", "Charts", argumentParser],
        path: "Benchmarks/adaptation",
        swiftSettings: settings
    ),
]

let values: [Target] =
    library("MediaCore", [])
    + library("Wording", [])
    + library("Threading", ["MediaCore"])
    + library("Capture", ["MediaCore", "Threading"])

let decisions: [Target] =
    library("RoomProtocol", ["MediaCore"], testedWith: ["RelayCore"])
    + library("Adaptation", ["MediaCore", "RoomProtocol"], testedWith: ["AdaptationSimulation"])
    + library(
        "RelayCore",
        path: "server/RelayCore",
        ["MediaCore", "Wording", "RoomProtocol", "Adaptation", "CPrefetch"]
    )

let edges: [Target] =
    library(
        "V4L2Capture",
        ["MediaCore", "Threading", "Capture", "CV4L2"],
        testedWith: ["TestSupport", "RoomKit", "VideoProcessing"]
    )
    + library(
        "ScreenCapture",
        ["MediaCore", "Threading", "Capture", "CXCB"],
        testedWith: ["TestSupport", "RoomKit", "VideoProcessing", "MediaFiles"]
    )
    + library("VP8Codec", ["MediaCore", "CVPX"], testedWith: ["Threading", "RoomProtocol"])
    + library("VideoProcessing", ["MediaCore", "Threading", "CYUV", "CTurboJPEG"])
    + library("WebSockets", ["MediaCore", "Threading", "CWebSockets"])
    + library("MediaFiles", ["MediaCore", "CPNG"], testedWith: ["VideoProcessing"])
    + library("Charts", [])
    + library("Tiles", ["MediaCore"])
    + library("SyntheticSources", ["MediaCore", "Threading", "Capture"])
    + [
        .systemLibrary(name: "CV4L2", pkgConfig: "libv4lconvert", providers: [.apt(["libv4l-dev"])]),
        .systemLibrary(
            name: "CXCB",
            pkgConfig: "xcb",
            providers: [
                .apt([
                    "libxcb1-dev", "libxcb-composite0-dev", "libxcb-damage0-dev", "libxcb-randr0-dev",
                    "libxcb-shm0-dev", "libxcb-xfixes0-dev",
                ])
            ]
        ),
        .systemLibrary(name: "CPrefetch"),
        .systemLibrary(name: "CVPX", pkgConfig: "vpx", providers: [.apt(["libvpx-dev"])]),
        .systemLibrary(name: "CYUV", providers: [.apt(["libyuv-dev"])]),
        .systemLibrary(name: "CTurboJPEG", pkgConfig: "libturbojpeg", providers: [.apt(["libturbojpeg0-dev"])]),
        .systemLibrary(
            name: "CWebSockets",
            pkgConfig: "libwebsockets",
            providers: [.apt(["libwebsockets-dev", "libev-dev"])]
        ),
        // No pkgConfig: it is a part of the C library.
        .systemLibrary(name: "CTimex"),
        .systemLibrary(name: "CPNG", pkgConfig: "libpng", providers: [.apt(["libpng-dev"])]),
        // No pkgConfig: SDL's flags have a macro that the package manager refuses, and none is needed.
        .systemLibrary(name: "CSDL", providers: [.apt(["libsdl2-dev"])]),
    ]

let assembly: [Target] =
    library(
        "RoomKit",
        [
            "MediaCore", "Threading", "Capture", "RoomProtocol", "Adaptation", "V4L2Capture",
            "ScreenCapture", "VP8Codec", "VideoProcessing", "WebSockets", "MediaFiles", "SyntheticSources",
        ],
        testedWith: ["RelayServer", "RelayCore"]
    )
    + library(
        "RelayServer",
        path: "server/RelayServer",
        ["MediaCore", "Threading", "Wording", "RoomProtocol", "RelayCore", "WebSockets", "CPrefetch", logging]
    )

let programs: [Target] =
    // What every program does as it begins and when its arguments cannot be used.
    library("ProgramSupport", ["Wording", "MediaCore", "Threading", argumentParser])
    + library(
        "Diagnosis",
        [
            "MediaCore", "Threading", "Capture", "RoomProtocol", "V4L2Capture", "ScreenCapture", "VP8Codec",
            "WebSockets", "SyntheticSources", "RoomKit", "CTimex",
        ],
        testedWith: ["TestSupport", "RelayServer", "RelayCore"]
    ) + [
        // What the programs of the client's side share.
        .target(
            name: "ClientCommandLine",
            dependencies: [
                "RoomKit", "RoomProtocol", "MediaCore", "MediaFiles", "Threading", argumentParser, unixSignals,
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "room-client",
            dependencies: [
                "ClientCommandLine", "ProgramSupport", "Wording", "Diagnosis", "RoomKit", "RoomProtocol", "MediaCore",
                "Threading",
                "MediaFiles",
                "SyntheticSources", "VP8Codec", "VideoProcessing", "Adaptation", "Charts",
                argumentParser, unixSignals,
            ],
            swiftSettings: strict
        ),
        // A program of its own, because SDL brings libraries for sound and graphics that robots do not have.
        .executableTarget(
            name: "room-view",
            dependencies: [
                "ClientCommandLine", "ProgramSupport", "Wording", "Tiles", "RoomKit", "MediaCore", "Threading",
                "MediaFiles",
                "VideoProcessing",
                "CSDL",
                argumentParser, unixSignals,
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ClientTests",
            dependencies: [
                "room-client", "ClientCommandLine", "RoomKit", "MediaCore", "Threading", "MediaFiles",
                "VideoProcessing", "TestTools", argumentParser,
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "room-server",
            // RelayCore too: its settings lie in RelayServer's options, and a change of their layout must reach here.
            dependencies: [
                "RelayServer", "RelayCore", "WebSockets", "MediaCore", "Threading", "ProgramSupport", "Wording",
                argumentParser, logging, unixSignals,
            ],
            path: "server/room-server",
            swiftSettings: strict
        ),
    ]

/// What benchmarks run besides the programs: the encoder of published tracks, and raw pictures on their way.
let benchmarks: [Target] = [
    .executableTarget(
        name: "encode-clip",
        dependencies: ["MediaCore", "MediaFiles", "Threading", "VP8Codec", "VideoProcessing", argumentParser],
        path: "Benchmarks/encode-clip",
        swiftSettings: strict
    ),
    .executableTarget(
        name: "picture-bench",
        dependencies: [
            "Capture", "MediaCore", "RelayServer", "RoomKit", "ScreenCapture", "Threading", "VideoProcessing", "CYUV",
            argumentParser,
        ],
        path: "Benchmarks/picture-bench",
        swiftSettings: settings
    ),
]

/// What the library's users read first.
///
/// Here rather than in a package of their own, which would build everything anew.
let examples: [Target] =
    [
        "MinimalPublisher", "MinimalSubscriber", "NoisePublisher", "MotionDetector", "GrayscalePublisher", "PlanesToC",
    ].map { name in
        .executableTarget(
            name: name,
            dependencies: ["RoomKit", argumentParser] + (name == "PlanesToC" ? ["CLuma"] : []),
            path: "Examples/\(name)",
            swiftSettings: strict
        )
    } + [.systemLibrary(name: "CLuma", path: "Examples/CLuma")]

/// Publisher, relay and subscriber together, in one process and as the programs; to be run with `--no-parallel`.
let endToEnd: [Target] = [
    .target(
        name: "TestSupport",
        dependencies: [
            "TestTools", "RoomKit", "RelayServer", "RelayCore", "RoomProtocol", "MediaCore", "Threading", "MediaFiles",
            "SyntheticSources", "VP8Codec", "WebSockets",
        ],
        path: "Tests/TestSupport",
        swiftSettings: settings
    ),
    .testTarget(
        name: "EndToEndTests",
        dependencies: [
            "TestSupport", "TestTools", "RoomKit", "RelayServer", "RelayCore", "RoomProtocol", "Adaptation",
            "MediaCore", "Threading", "MediaFiles", "SyntheticSources", "WebSockets", "Tiles", "room-client",
            "room-server",
        ],
        swiftSettings: settings
    ),
]

/// An application's view: without access to what is internal to this package.
let application: [Target] = [
    .testTarget(
        name: "ApplicationTests",
        dependencies: ["RoomKit", "RelayServer"],
        packageAccess: false,
        swiftSettings: settings
    )
]

let everything =
    values + decisions + edges + assembly + programs + benchmarks + examples + tools + endToEnd + application

/// The targets that a variable of the environment names.
@MainActor func targets(in variable: String) -> [String] {
    let names = (Context.environment[variable] ?? "").split(separator: " ").map(String.init)
    for name in names where !everything.contains(where: { $0.name == name }) {
        fatalError("\(variable) names \(name), and there is no such target.")
    }
    return names
}

/// A build that runs some of the tests need not compile the others.
let leftOut = targets(in: "ROOM_LEAVE_OUT")
/// To optimize a test's code takes longer than it runs, unless it computes much: pictures, and emulated peers of a relay.
let testsToOptimize = ["RelayCoreTests", "ScreenCaptureTests", "VP8CodecTests"]
let unoptimized =
    everything.filter { $0.type == .test }.map(\.name).filter { !testsToOptimize.contains($0) }
    + targets(in: "ROOM_UNOPTIMIZED")
for target in everything where unoptimized.contains(target.name) {
    target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-Onone"], .when(configuration: .release))]
}

let package = Package(
    name: "room",
    products: [
        .library(name: "RoomKit", targets: ["RoomKit"]),
        .library(name: "RelayServer", targets: ["RelayServer"]),
        .executable(name: "room-client", targets: ["room-client"]),
        .executable(name: "room-view", targets: ["room-view"]),
        .executable(name: "room-server", targets: ["room-server"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: everything.filter { !leftOut.contains($0.name) }
)
