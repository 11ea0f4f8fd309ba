import Glibc

/// The access rights of a file, and how a user gets the right to open it.
package struct FileAccess: Hashable, Sendable {
    /// The file's permissions, as in 0o660.
    package var mode: UInt32
    /// The number of the group that owns it.
    package var group: UInt32
    /// That group's name; `nil` if the machine has none for the number.
    package var groupName: String?
    /// The user who runs this program.
    package var user: String
    /// Whether this program runs as root.
    package var isRoot: Bool
    /// Whether this program has the rights of the group.
    package var isInGroup: Bool
    /// Whether the machine's list of users has this one in the group.
    package var isListedInGroup: Bool

    /// Access with the given facts.
    package init(
        mode: UInt32,
        group: UInt32,
        groupName: String?,
        user: String,
        isRoot: Bool = false,
        isInGroup: Bool = false,
        isListedInGroup: Bool = false
    ) {
        self.mode = mode
        self.group = group
        self.groupName = groupName
        self.user = user
        self.isRoot = isRoot
        self.isInGroup = isInGroup
        self.isListedInGroup = isListedInGroup
    }

    /// The facts about the file at `path` and the user of this program; `nil` if there is no such file.
    package init?(path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        mode = status.st_mode & 0o777
        group = status.st_gid
        groupName = Self.name(ofGroup: status.st_gid)
        let effective = geteuid()
        let (name, primary) = Self.user(effective)
        user = name ?? "\(effective)"
        isRoot = effective == 0
        isInGroup = getegid() == status.st_gid || Self.ownGroups.contains(status.st_gid)
        isListedInGroup = name.map { Self.groups(of: $0, primary).contains(status.st_gid) } ?? false
    }

    /// Whether the group may read and write.
    private var servesGroup: Bool { mode & 0o060 == 0o060 }

    /// What gives this user access to the file at `path`.
    package func advice(for path: String) -> String {
        if isRoot {
            return "even root is refused: start the container with --device \(path), or look at the service's "
                + "DeviceAllow= and the security policy"
        }
        guard servesGroup, group != 0 else {
            return "no group may use it; let one: sudo chgrp video \(path) && sudo chmod 660 \(path), and a udev rule "
                + "to keep it so"
        }
        guard let groupName else {
            return "it belongs to group \(group), which has no name here: start the container with --group-add \(group)"
        }
        if isInGroup {
            return "the permissions allow it: a security policy or the container refuses; give the container the device"
        }
        if isListedInGroup {
            return "\(user) is in the group \(groupName), and this session is older than that: log out and in again"
        }
        return "sudo usermod -aG \(groupName) \(user), then log out and in again"
    }
}

// MARK: - The machine's users

extension FileAccess {
    /// The most bytes that an entry of the list of users or groups may take.
    private static let entryBytes = 1 << 16

    private static func name(ofGroup number: gid_t) -> String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: entryBytes) { memory in
            guard let buffer = memory.baseAddress else { return nil }
            var entry = unsafe Glibc.group()
            var found: UnsafeMutablePointer<Glibc.group>?
            guard unsafe getgrgid_r(number, &entry, buffer, memory.count, &found) == 0,
                unsafe found != nil, let name = unsafe entry.gr_name
            else { return nil }
            return unsafe String(cString: name)
        }
    }

    private static func user(_ number: uid_t) -> (name: String?, primaryGroup: gid_t) {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: entryBytes) { memory in
            guard let buffer = memory.baseAddress else { return (nil, getegid()) }
            var entry = unsafe passwd()
            var found: UnsafeMutablePointer<passwd>?
            guard unsafe getpwuid_r(number, &entry, buffer, memory.count, &found) == 0,
                unsafe found != nil, let name = unsafe entry.pw_name
            else { return (nil, getegid()) }
            return (unsafe String(cString: name), unsafe entry.pw_gid)
        }
    }

    private static var ownGroups: [gid_t] {
        let count = getgroups(0, nil)
        guard count > 0 else { return [] }
        var groups = [gid_t](repeating: 0, count: Int(count))
        let read = unsafe getgroups(count, &groups)
        return Array(groups.prefix(max(0, Int(read))))
    }

    private static func groups(of user: String, _ primary: gid_t) -> [gid_t] {
        var count: Int32 = 256
        var groups = [gid_t](repeating: 0, count: Int(count))
        guard unsafe getgrouplist(user, primary, &groups, &count) >= 0 else { return [] }
        return Array(groups.prefix(Int(count)))
    }
}
