import Glibc

/// Says which limits of the system are too low for this program.
package struct LimitCheck: Hashable, Sendable {
    /// How many files and sockets the process may have open.
    package var openFiles: Int
    /// How many more threads the control group admits; `nil` for no limit.
    package var threadsLeft: Int?
    /// How many CPUs' time the control group admits; `nil` for no limit.
    package var processorQuota: Double?
    /// The most bytes that the kernel keeps for a TCP socket to send; `nil` if that cannot be found out.
    package var sendBuffer: Int?

    /// A client has some 20 files open with a camera and a room, and 2 for each dumped track.
    private static let leastOpenFiles = 128
    /// A client with a camera and 8 received tracks has some 25 threads.
    private static let leastThreads = 32
    /// What 6 Mbit/s need over a round trip of 300 ms.
    private static let leastSendBuffer = 262_144

    /// A check with the given facts.
    package init(openFiles: Int, threadsLeft: Int? = nil, processorQuota: Double? = nil, sendBuffer: Int? = nil) {
        self.openFiles = openFiles
        self.threadsLeft = threadsLeft
        self.processorQuota = processorQuota
        self.sendBuffer = sendBuffer
    }

    /// The limits of this process.
    package static var ofThisProcess: LimitCheck {
        // A line for each hierarchy; that of the unified one is "0::/system.slice/robot.service".
        let group = SystemFile.lines(of: "/proc/self/cgroup").first { $0.hasPrefix("0::") }?.dropFirst(3) ?? "/"
        return LimitCheck(group: "/sys/fs/cgroup\(group)", kernel: "/proc/sys")
    }

    /// The limits of this process.
    ///
    /// - Parameters:
    ///   - group: The folder of the process's control group.
    ///   - kernel: The folder of the kernel's settings.
    package init(group: String, kernel: String) {
        var limit = rlimit()
        unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        openFiles = Int(clamping: limit.rlim_cur)
        if let most = Self.numbers(in: "\(group)/pids.max").first,
            let now = Self.numbers(in: "\(group)/pids.current").first
        {
            threadsLeft = max(0, most - now)
        }
        // The file holds "max 100000" or two numbers: microseconds of CPU time, in so many microseconds.
        let quota = Self.numbers(in: "\(group)/cpu.max")
        if quota.count == 2, quota[1] > 0 { processorQuota = Double(quota[0]) / Double(quota[1]) }
        // Least, usual and most.
        let memory = Self.numbers(in: "\(kernel)/net/ipv4/tcp_wmem")
        if memory.count == 3 { sendBuffer = memory[2] }
    }

    private static func numbers(in path: String) -> [Int] {
        (SystemFile.text(of: path) ?? "").split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
    }

    /// What was found.
    package func findings() -> [Finding] {
        var findings: [Finding] = []
        if openFiles < Self.leastOpenFiles {
            findings.append(
                .note(.limits, "openFiles", "only \(openFiles) open files are allowed", "raise it: ulimit -n 1024")
            )
        }
        if let threadsLeft, threadsLeft < Self.leastThreads {
            let advice = "raise the container's or service's limit (--pids-limit, TasksMax=)"
            findings.append(.note(.limits, "threads", "only \(threadsLeft) more threads are allowed", advice))
        }
        if let processorQuota, processorQuota < 1 {
            let share = Int((processorQuota * 100).rounded())
            let advice = "raise the container's or service's limit (--cpus, CPUQuota=), or publish a smaller --size"
            findings.append(.note(.limits, "processorQuota", "only \(share) % of a CPU is allowed", advice))
        }
        if let sendBuffer, sendBuffer < Self.leastSendBuffer {
            let advice = "sudo sysctl net.ipv4.tcp_wmem='4096 16384 4194304'"
            findings.append(
                .note(
                    .limits,
                    "sendBuffer",
                    "the kernel keeps at most \(sendBuffer) bytes for a socket to send",
                    advice
                )
            )
        }
        guard findings.isEmpty else { return findings }
        let threads = threadsLeft.map { ", \($0) more threads" } ?? ""
        return [.ok(.limits, "\(openFiles) open files\(threads)")]
    }
}
