import Logging
import MediaCore
import RelayCore
import Testing
import Threading

@testable import RelayServer

@Suite("The log of what peers do")
struct PeerLogTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
    private let lines = Monitor([String]())

    private func log(_ level: Logger.Level = .info) -> PeerLog {
        var logger = Logger(label: "test") { [lines] _ in LineHandler(lines: lines) }
        logger.logLevel = level
        return PeerLog(logger)
    }

    /// A peer that published and withdrew a track wrote 5 MB a second, and each refused stranger a line.
    @Test(
        "A flood of any kind is cut, and the next line of the kind says how many are missing",
        arguments: [
            (RelayNotice.failed(identity: nil, reason: "no"), 20), (.memoryUsedUp(tracks: 1), 20),
            (.failed(identity: "a", reason: "no"), 500), (.joined(identity: "a", room: "r", client: nil), 500),
            (.left(identity: "a", room: "r", counts: PacketCounts()), 500),
            (.published(track: "t", identity: "a", room: "r"), 500),
            (.unpublished(track: "t", identity: "a", room: "r"), 500),
        ]
    )
    func flood(notice: RelayNotice, burst: Int) {
        var log = log()
        for _ in 0..<burst + 7 { log.note(notice, at: start) }
        #expect(lines.withLock { $0 } == Array(repeating: "\(notice)", count: burst))
        log.note(notice, at: start + .seconds(10))
        #expect(lines.withLock { $0.last } == "\(notice) (7 lines of this kind before this one were left out)")
    }

    @Test("A flood of one kind hides no other")
    func kinds() {
        var log = log()
        for _ in 0..<10_000 {
            log.note(.failed(identity: nil, reason: "no"), at: start)
            log.note(.published(track: "t", identity: "a", room: "r"), at: start)
        }
        lines.change { $0 = [] }
        log.note(.joined(identity: "b", room: "r", client: nil), at: start)
        #expect(lines.withLock { $0.count } == 1)
    }

    @Test("Connections are logged only when that is asked for, and no more than the others")
    func connections() {
        var quiet = log()
        quiet.connected("127.0.0.1", at: start)
        #expect(lines.withLock { $0.isEmpty })
        var verbose = log(.debug)
        for _ in 0..<1000 {
            verbose.connected("127.0.0.1", at: start)
            verbose.disconnected("127.0.0.1", how: "so", at: start)
        }
        #expect(lines.withLock { $0.count } == 500)
    }
}

/// Gathers the messages of a log.
struct LineHandler: LogHandler {
    let lines: Monitor<[String]>
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.change { $0.append("\(event.message)") }
    }
}
