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
        // A machine all of whose nodes are refused ends the list with 69 or 77.
        let ending = try await listing.end()
        let listed = try listing.events()
        let devices = listed.filter { $0.string("event") == "device" }.compactMap { $0.string("path") }
        let refused = listed.count { $0.string("event") == "deviceRefused" }
        #expect(ending == .exit(0) || devices.isEmpty && refused > 0 && [.exit(69), .exit(77)].contains(ending))
        let expected = devices.count + refused
        let watcher = try Program("room-client", ["devices", "--watch", "--json"])
        try await eventually("it heeds the signal") {
            try expectedSignals(watcher.identifier) & (1 << UInt64(signal - 1)) != 0
        }
        try await eventually("all cameras are listed: \(watcher.text)") { watcher.lines.count >= expected }
        #expect(watcher.isRunning, "\(watcher.errors)")
        #expect(try await end([watcher], with: signal) == [.exit(0)])
        let events = try watcher.events()
        let added = events.filter { $0.string("event") == "deviceAdded" }
        #expect(events.count == added.count + refused)
        // Without a camera it seemed to hang.
        #expect(watcher.errors.contains("Ctrl-C ends the watch") == devices.isEmpty, "\(watcher.errors)")
        // A camera that was there and could not be opened counted as none.
        #expect(watcher.errors.contains("No cameras yet") == (devices.isEmpty && refused == 0), "\(watcher.errors)")
        #expect(added.compactMap { $0.string("path") }.sorted() == devices.sorted())
    }
}
