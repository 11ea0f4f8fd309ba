import Glibc
import TestSupport
import TestTools
import Testing

@Suite("The program that lists devices", .enabled(if: Program.isAllowed), .timeLimit(.minutes(2)))
struct ProgramDevicesTests {
    /// The signals that a process heeds or ignores: bit 0 is for signal 1.
    private func expectedSignals(_ process: Int32) throws -> UInt64 {
        let lines = try text(of: "/proc/\(process)/status").split(separator: "\n")
        return ["SigCgt:", "SigIgn:"].reduce(0) { bits, field in
            let line = lines.first { $0.hasPrefix(field) }
            return bits | (line?.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0)
        }
    }

    // The lab of cameras has those that come and go.
    @Test("Watching lists the cameras and goes on until SIGTERM or Ctrl-C", arguments: [SIGTERM, SIGINT])
    func watch(signal: Int32) async throws {
        let listing = try Program("room-client", ["devices", "--json"])
        #expect(try await listing.end() == .exit(0))
        let devices = try listing.events().compactMap { $0.string("path") }
        let watcher = try Program("room-client", ["devices", "--watch", "--json"])
        try await eventually("it heeds the signal") {
            try expectedSignals(watcher.identifier) & (1 << UInt64(signal - 1)) != 0
        }
        try await eventually("all cameras are listed: \(watcher.text)") { watcher.lines.count >= devices.count }
        #expect(watcher.isRunning, "\(watcher.errors)")
        #expect(try await end([watcher], with: signal) == [.exit(0)])
        let events = try watcher.events()
        #expect(events.allSatisfy { $0.string("event") == "deviceAdded" })
        // Without a camera it seemed to hang.
        #expect(watcher.errors.contains("No cameras yet") == devices.isEmpty, "\(watcher.errors)")
        #expect(events.compactMap { $0.string("path") }.sorted() == devices.sorted())
    }
}
