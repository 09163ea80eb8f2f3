# A database: 200 clients each read a page and compute. After every 1,000 reads ten writers put 100 pages in place, durably, and after
# every 3,200 the log gets a record.

set $dir=/tmp
set $iosize=2k
set $filesize=10m
set $nshadows=200
set $ndbwriters=10

define fileset name=tables,path=$dir,size=$filesize,entries=10,dirwidth=1024,prealloc
define fileset name=log,path=$dir,size=$filesize,entries=1,dirwidth=1024,prealloc

define process name=logger
{
  thread name=logger
  {
    flowop write name=log,filesetname=log,iosize=256k,random,dsync
    flowop semblock name=commit,value=3200,highwater=1000
  }
}

define process name=writer,instances=$ndbwriters
{
  thread name=writer
  {
    flowop write name=write,filesetname=tables,iosize=$iosize,random,iters=100,opennext,dsync
    flowop hog name=prepare,value=10000
    flowop semblock name=dirty,value=1000,highwater=2000
  }
}

define process name=client,instances=$nshadows
{
  thread name=client
  {
    flowop read name=read,filesetname=tables,iosize=$iosize,random,opennext
    flowop hog name=compute,value=200000
    flowop sempost name=log-it,value=1,target=commit,blocking
    flowop sempost name=write-it,value=1,target=dirty,blocking
  }
}

run 60
