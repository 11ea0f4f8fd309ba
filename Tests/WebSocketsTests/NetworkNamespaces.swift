import Glibc
import TestTools
import Testing

@testable import WebSockets

/// Two network namespaces with a cable between them, for peers that vanish without a word.
///
/// A thread that enters one has its sockets there. Needs root and the `ip` command.
final class NetworkNamespaces: Sendable {
    /// Why a test that needs them is left out.
    static let absence: Comment = "network namespaces need root and the ip command"
    /// Whether the tests that need them run: there can be some, or `.ci/run` requires them, and fails without.
    static let areUsed: Bool = getenv("ROOM_TESTS_NEED_NAMESPACES") != nil || (try? NetworkNamespaces()) != nil

    enum End: Int, CaseIterable, Sendable {
        case near = 1
        case far

        var address: String { "192.0.2.\(rawValue)" }
    }

    private let prefix: String

    init() throws {
        prefix = "room-\(getpid())-\(UInt32.random(in: 0...0xffff))"
        // A cable's ends have names of at most 15 bytes.
        let commands =
            End.allCases.map { "ip netns add \(name(of: $0))" }
            + ["ip -n \(name(of: .near)) link add cable type veth peer name cable netns \(name(of: .far))"]
            + End.allCases.flatMap { end in
                [
                    "ip -n \(name(of: end)) address add \(end.address)/24 dev cable",
                    "ip -n \(name(of: end)) link set cable up",
                ]
            }
        for command in commands { try Self.run(command) }
    }

    deinit {
        for end in End.allCases { try? Self.run("ip netns delete \(name(of: end))") }
    }

    /// Takes the far end's address away: nothing reaches it from then on, and nothing comes from it.
    func vanish() throws {
        try Self.run("ip -n \(name(of: .far)) address del \(End.far.address)/24 dev cable")
    }

    /// Has the sockets that the calling thread opens from now on be at `end`.
    func enter(_ end: End) {
        let descriptor = open("/run/netns/\(name(of: end))", O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        // Glibc's module lacks it, because its header wants _GNU_SOURCE.
        typealias SetNamespace = @convention(c) (Int32, Int32) -> Int32
        guard descriptor >= 0, let symbol = dlsym(nil, "setns"),
            unsafeBitCast(symbol, to: SetNamespace.self)(descriptor, 0) == 0
        else { fatalError("the namespace \(name(of: end)) cannot be entered: errno \(errno)") }
    }

    private func name(of end: End) -> String { "\(prefix)-\(end)" }

    private static func run(_ command: String) throws {
        guard system("\(command) >/dev/null 2>&1") == 0 else { throw TestFailure("“\(command)” failed") }
    }
}
