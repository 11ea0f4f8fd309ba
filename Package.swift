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
            dependencies: [.byName(name: name)] + dependencies + testDependencies,
            swiftSettings: settings
        ),
    ]
}

let values: [Target] =
    library("MediaCore", [])
    + library("Threading", ["MediaCore"])

let decisions: [Target] =
    library("RoomProtocol", ["MediaCore"], testedWith: ["RelayCore"])
    + library("RelayCore", path: "server/RelayCore", ["MediaCore", "RoomProtocol"])

let edges: [Target] =
    library("VP8Codec", ["MediaCore", "CVPX"], testedWith: ["Threading"]) + [
        .systemLibrary(name: "CVPX", pkgConfig: "vpx", providers: [.apt(["libvpx-dev"])])
    ]

let assembly: [Target] = []

let programs: [Target] = []

let package = Package(
    name: "room",
    products: [
        .library(name: "MediaCore", targets: ["MediaCore"])
    ],
    targets: values + decisions + edges + assembly + programs
)
